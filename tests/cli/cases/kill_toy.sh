# Killed with its parent in the middle, a search goes on and ends with the same record.
. "$(dirname "$0")/../lib.sh"
toy whole 60 '"delay_us": 2000'
toy broken 60 '"delay_us": 2000'
mscgym search whole.json >/dev/null
for lines in 6 20 33; do
    mscgym search broken.json >/dev/null 2>&1 &
    parent=$!
    # Wait for the record to grow, or for the search to end.
    while kill -0 $parent 2>/dev/null &&
        [ "$(cat broken/toy.jsonl 2>/dev/null | wc -l)" -lt $lines ]; do
        sleep 0.005
    done
    worker=$(cat /proc/$parent/task/$parent/children 2>/dev/null)
    {
        kill -KILL $worker $parent
        wait $parent
    } 2>/dev/null # what the shell says of it
done
mscgym search broken.json >/dev/null
mscgym show whole/toy.jsonl --canonical | tail -n +2 >whole.txt
mscgym show broken/toy.jsonl --canonical | tail -n +2 >broken.txt
wc -l <whole.txt
cmp whole.txt broken.txt && echo "the same record"
ls broken
