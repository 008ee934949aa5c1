# Sourced by local_chain.sh and local_evolution.sh: one step is one row of a Markdown table.
# Wants $folder (its log is there) and $harness; sets $bad to 1 at an exit code that is not the step's own.
bad=0

# step CODES VERB…: run it, add its row; CODES are the exit codes it may end with.
step() {
    local codes=" $1 " times rc
    shift
    echo "\$ harness $*" >>"$folder/log"
    TIMEFORMAT='%R %U %S'
    times=$({ time nice "$harness" "$@" >>"$folder/log" 2>&1; echo "$?" >"$folder/rc"; } 2>&1 | tail -1)
    rc=$(cat "$folder/rc")
    awk -v step="harness $*" -v rc="$rc" -v times="$times" 'BEGIN {
        split(times, t, " ")
        printf "| `%s` | %s | %.2f | %.2f |\n", step, rc, t[1] / 60, (t[2] + t[3]) / 60
    }'
    case $codes in *" $rc "*) ;; *) bad=1; echo "unexpected exit code $rc: $folder/log" >&2 ;; esac
}

# head_of_table: the machine, and the first two lines of the table.
head_of_table() {
    local processor
    processor=$(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo 2>/dev/null)
    echo "$(uname -s) $(uname -m), ${processor:-unknown processor}, $(getconf _NPROCESSORS_ONLN) cores,"
    echo "OMP_NUM_THREADS=$OMP_NUM_THREADS; load average$(uptime | sed 's/.*average[s]*://') at the beginning."
    echo
    echo "| step | exit | wall minutes | CPU minutes |"
    echo "| --- | --- | --- | --- |"
}
