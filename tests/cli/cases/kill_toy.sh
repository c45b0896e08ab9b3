# A search killed with its parent process continues and ends with the same record.
. "$(dirname "$0")/../lib.sh"
toy whole 60 '"delay_us": 2000'
toy broken 60 '"delay_us": 2000'
mscgym search whole.json >/dev/null
for lines in 6 20 33; do
    killed $lines broken/toy.jsonl "" mscgym search broken.json
done
mscgym search broken.json >/dev/null
mscgym show whole/toy.jsonl --canonical | tail -n +2 >whole.txt
mscgym show broken/toy.jsonl --canonical | tail -n +2 >broken.txt
wc -l <whole.txt
cmp whole.txt broken.txt && echo "the same record"
ls broken
