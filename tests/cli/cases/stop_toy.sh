# The first signal ends the search after its round, says how to go on, and is told from one that is done.
. "$(dirname "$0")/../lib.sh"
toy a 4000 '"delay_us": 20000'
sed -i 's/"verbose": "error"/"verbose": "warning"/' a.json
mscgym search a.json >/dev/null 2>err.txt &
search=$!
while [ "$(cat a/toy.jsonl 2>/dev/null | wc -l)" -lt 6 ]; do
    sleep 0.01
done
kill -TERM $search
wait $search
echo "exit $?"
grep -c . a/toy.jsonl | awk '{ print ($1 < 4000) ? "stopped early" : "not stopped" }'
cat err.txt
ls a
