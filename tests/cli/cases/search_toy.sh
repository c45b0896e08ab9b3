# A search, its repetition, more trials, and other ways that lead to the same record.
. "$(dirname "$0")/../lib.sh"
toy a 24
mscgym search a.json
cp a/toy.jsonl first.jsonl
mscgym search a.json >again.txt
mscgym show a/toy.jsonl >shown.txt
cmp a/toy.jsonl first.jsonl && echo "a finished search adds nothing"

toy b 8
mscgym search b.json >/dev/null
mscgym resume b/toy.jsonl --trials 24 >/dev/null
mscgym show a/toy.jsonl --canonical >a.txt
mscgym show b/toy.jsonl --canonical | sed 's/"workspace":"[^"]*"//' >b.txt
sed -i 's/"workspace":"[^"]*"//' a.txt
cmp a.txt b.txt && echo "resume gives the same record"

toy c 24
mscgym search c.json --threads 1 --quiet --record c/other.jsonl >/dev/null
cmp <(tail -n +2 a.txt) <(mscgym show c/other.jsonl --canonical | tail -n +2) &&
    echo "another record name gives the same trials"
mscgym verify a/toy.jsonl
mscgym verify a/toy.jsonl --trials 3,7-9
mscgym show a/toy.jsonl --best
mscgym show a/toy.jsonl --top 3
mscgym search a.json --json --quiet | grep '"entry"'
head -n 1 a/toy.jsonl >a/none.jsonl
mscgym show a/none.jsonl
