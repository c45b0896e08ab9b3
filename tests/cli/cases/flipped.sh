# A record in which one bit of a loss (line 6) was flipped, with valid checksums (made with Python's
# xxhash). The flipped bit makes that trial the winner until it is evaluated again.
. "$(dirname "$0")/../lib.sh"
begin() { # begin NAME: writes NAME.json
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

# The result of the re-evaluation is kept.
mscgym show f/toy.jsonl >shown.txt
diff <(grep -v '^warning\|^exit' f.txt) shown.txt && echo "shown again"
mscgym show f/toy.jsonl --best | head -n 1
mscgym show f/toy.jsonl --json | jq -c '(.left_out[] | [.id, .line, .metric]), .winner.id'
try mscgym verify f/toy.jsonl
# After a resume the trial is still left out.
mscgym resume f/toy.jsonl --trials 22 --quiet | sed -n '/^line/p; s/^ *winner: \(trial [0-9]*\).*/\1/p'
