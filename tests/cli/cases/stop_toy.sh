# The first signal is acknowledged at once and ends the search after its round. The message says how
# to continue, and differs from that of a finished search.
. "$(dirname "$0")/../lib.sh"

# stop NAME LEVEL: sends SIGTERM once the record has some trials.
stop() {
    toy "$1" 4000 '"delay_us": 20000'
    sed -i 's/"verbose": "error"/"verbose": "'"$2"'"/' "$1.json"
    mscgym search "$1.json" >/dev/null 2>err.txt &
    search=$!
    while [ "$(cat "$1/toy.jsonl" 2>/dev/null | wc -l)" -lt 6 ]; do
        sleep 0.01
    done
    kill -TERM $search
    wait $search
    echo "exit $?"
}
stop a warning
grep -c . a/toy.jsonl | awk '{ print ($1 < 4000) ? "stopped early" : "not stopped" }'
cat err.txt
ls a
# The log has the acknowledgement, too.
stop b info
grep -o "info: stopping.*" b/MSC_LOG
