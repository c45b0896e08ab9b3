# Damaged measured values (times) cost neither a trial nor budget.
. "$(dirname "$0")/../lib.sh"
toy a 20
sed -i 's/"trials": 20/"trials": 20, "time": "1h"/' a.json
mscgym search a.json --quiet >/dev/null
cp a/toy.jsonl whole.jsonl
damage() { # damage RECORD EXPRESSION TRIALS: edits the record by sed and resumes it
    sed -i "$2" "$1"
    mscgym show "$1" 2>&1 | sed -n 's/^warning: //p; s/^trials: //p'
    mscgym resume "$1" --trials "$3" 2>/dev/null | sed -n 's/^trials: //p; s/^ended: //p'
}
# Four damaged lines: a time too large within the record, and at its end; a negative time; no measured
# values.
damage a/toy.jsonl '11s/"elapsed_s":/&999/' 21
damage a/toy.jsonl '$s/"elapsed_s":/&999/' 22
damage a/toy.jsonl '12s/"us":/"us":-/' 23
damage a/toy.jsonl '13s/,"measured".*/,"measured":/; 1s/"time":"20/"time":"1/' 24
toy b 24
mscgym search b.json --quiet >/dev/null
cmp <(mscgym show a/toy.jsonl --canonical 2>/dev/null | tail -n +2) \
    <(mscgym show b/toy.jsonl --canonical | tail -n +2) && echo "the same record"
