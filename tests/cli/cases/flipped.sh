# A record of which one bit was flipped, in the loss of line 6, and the checksums put right (by
# another program: python xxhash). The bit makes that trial win, until it is evaluated once more.
. "$(dirname "$0")/../lib.sh"
begin() { # NAME
    toy "$1" 20 '"bounds": {"size_ratio": {"max": 0.08}}'
    sed -i 's/"agent": .*/"agent": {"type": "random"},/' "$1.json"
}
begin whole
mscgym search whole.json >whole.txt
begin f
mkdir f
cp "$FILES/flipped.jsonl" f/toy.jsonl
mscgym show f/toy.jsonl | sed -n 's/^ *winner: \(trial [0-9]*\).*/\1/p'
sed -i 's/"verbose": "error"/"verbose": "warning"/' f.json
try mscgym search f.json >f.txt
diff whole.txt f.txt

# What was found out is kept.
mscgym show f/toy.jsonl >shown.txt
diff <(grep -v '^warning\|^exit' f.txt) shown.txt && echo "shown again"
mscgym show f/toy.jsonl --best | head -n 1
mscgym show f/toy.jsonl --json | jq -c '(.left_out[] | [.id, .line, .metric]), .winner.id'
try mscgym verify f/toy.jsonl
# Gone on with, it is left out all the same.
mscgym resume f/toy.jsonl --trials 22 --quiet | sed -n '/^line/p; s/^ *winner: \(trial [0-9]*\).*/\1/p'
