#!/bin/bash
# The night's job: measures the candidate, asks the gates, promotes. Acts on exit codes alone.
# EVALSET, LIMIT, MAX_RUNTIME, MAX_TOKENS bound it; NOTIFY is a command that gets one line.
set -u
: "${EVALSET:=live_stream_qa}" "${LIMIT:=100}" "${MAX_RUNTIME:=3h}" "${MAX_TOKENS:=20000000}" "${NOTIFY:=echo}"
job() { harness cron --lock nightly --if-locked skip --max-runtime "$MAX_RUNTIME" "$@"; }

job -- eval "$EVALSET" --limit "$LIMIT" --max-tokens "$MAX_TOKENS" -q > /dev/null
code=$?
if [ "$code" -eq 0 ]; then
  job --last-success .harness/nightly.ok -- promote --max-tokens "$MAX_TOKENS" -q > /dev/null
  code=$?
fi
case $code in
  0) $NOTIFY "promoted, or already running" ;;
  3) $NOTIFY "the gates pass: harness promote --approve NAME" ;;
  10) $NOTIFY "a gate failed: harness promote --dry-run" ;;
  11) $NOTIFY "the gates cannot decide: harness promote --plan" ;;
  12) $NOTIFY "locked, drifted or stale: harness tools check; harness status" ;;
  13) $NOTIFY "out of time or budget: the next night goes on" ;;
  130 | 143) $NOTIFY "stopped: the next night goes on" ;;
  *) $NOTIFY "error $code: harness doctor" ;;
esac
exit "$code"
