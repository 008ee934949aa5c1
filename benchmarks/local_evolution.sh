#!/usr/bin/env bash
# What the deterministic proposer's edits do to `--policy local`: the tables of docs/local.md.
#
#   make install EXTRA=local && benchmarks/local_evolution.sh [ITEMS] [FOLDER]      # 40 items
#
# Measures the base harness, diagnoses that run, proposes, accepts all, measures the edited harness on the
# same items (the first EDITED of them, where that is set), and prints the paired differences. Where nothing
# is proposed the harness stays as it was and is not measured twice: the policy is deterministic. In a FOLDER
# that an interrupted run left, it goes on: steps that were done are not done again, and an evaluation goes on
# with its next item. POLICY=builtin runs it on that one. Exits 1 where a step ends with a code not its own.
set -uo pipefail
items=${1:-40}
policy=${POLICY:-local}
home=$(cd "$(dirname "$0")/.." && pwd)
harness=${HARNESS:-$home/.venv/bin/harness}
folder=${2:-$(mktemp -d "${TMPDIR:-/tmp}/harness-local-XXXXXX")}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
export XDG_STATE_HOME=$folder/state OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=1
. "$home/benchmarks/local_steps.sh"

# once NAME COMMAND…: run the step unless it was done; its row is kept.
once() {
    local name=$1
    shift
    [ -e "$folder/$name.row" ] || {
        "$@" >"$folder/row"
        [ "$bad" = 0 ] || { cat "$folder/row"; exit 1; }
        mv "$folder/row" "$folder/$name.row"
    }
    cat "$folder/$name.row"
}

# measure ITEMS OPTIONS…: an evaluation; one that was begun and has no report is gone on with.
measure() {
    local begun items=$1
    shift
    begun=$(ls -d .harness/runs/*/ 2>/dev/null | tail -1)
    if [ -n "$begun" ] && [ ! -e "$begun/report.json" ]; then
        step 0 eval live_stream_qa --resume latest
    else
        step 0 eval live_stream_qa --policy "$policy" --limit "$items" "$@"
    fi
}

head_of_table
cd "$folder" || exit 1
once init step 0 init x
cd x || exit 1
once base measure "$items"
once diagnose step 0 diagnose
once edit step 0 edit --plan-only -o p.yaml
once show step 0 edit show p.yaml
once apply step 0 edit apply p.yaml --accept all --by script
if git rev-parse -q --verify refs/heads/evolve/1 >/dev/null; then
    once edited measure "${EDITED:-$items}" --harness evolve/latest
    echo
    "$harness" compare --markdown
else
    echo
    echo "Nothing was proposed: the edited harness is the base harness, and so is what it does."
    echo
    "$harness" runs show latest
fi
echo
echo "Output: $folder/log"
exit $bad
