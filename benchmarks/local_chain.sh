#!/usr/bin/env bash
# The loop on `--policy local`, step by step, as the Markdown table of docs/local.md.
#
#   make install EXTRA=local && benchmarks/local_chain.sh [ITEMS]      # 8 items where none is said
#
# A new folder with its own state home, so the first step that needs the model also converts its weights.
# Every step's output goes to FOLDER/log. Where there is nothing to propose, the proposal is empty and the
# second evaluation is of the same harness. POLICY=builtin runs it on that one. Exits 1 where a step ends with a code that is not its own, or the chain does
# not end INCONCLUSIVE.
set -uo pipefail
items=${1:-8}
policy=${POLICY:-local}
home=$(cd "$(dirname "$0")/.." && pwd)
harness=${HARNESS:-$home/.venv/bin/harness}
folder=$(mktemp -d "${TMPDIR:-/tmp}/harness-local-XXXXXX")
export XDG_STATE_HOME=$folder/state OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=1
. "$home/benchmarks/local_steps.sh"

evaluate=(eval live_stream_qa --policy "$policy" --limit "$items")
head_of_table
cd "$folder" || exit 1
step 0 init x
cd x || exit 1
step 0 "${evaluate[@]}"
step 0 diagnose
step 0 edit --plan-only -o p.yaml
step 0 edit show p.yaml
step 0 edit apply p.yaml --accept all
step 0 "${evaluate[@]}" --harness evolve/latest
step 0 compare
step 11 promote
echo
echo "Load average$(uptime | sed 's/.*average[s]*://') at the end. Output: $folder/log"
exit $bad
