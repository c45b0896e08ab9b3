# Figures that the end of a search computes are kept next to its record, and shown without being
# computed again.
. "$(dirname "$0")/../lib.sh"
tiny a
mscgym search a.json >result.txt
cp a/tiny.jsonl.result.json first.json
show() { # show RECORD: counts the rows that need an evaluation
    mscgym show "$1" >shown.txt 2>note.txt
    cat note.txt
    grep -c 'uncompressed\|validation\|noise\|isolated_loss_sum\|^ended' shown.txt
}
show a/tiny.jsonl
diff <(grep -v '^strategy\|^model' result.txt) shown.txt && echo "the search's own table"
diff <(mscgym show a/tiny.jsonl --json | jq -S .) \
    <(mscgym search a.json --json | jq -S '.[0] | del(.entry, .files)') && echo "as JSON, too"
cmp a/tiny.jsonl.result.json first.json && echo "kept the same again"
# The kept file is moved together with its record. The model, the inputs and the scales are not there.
mkdir b
mv a/tiny.jsonl b/other.jsonl
mv a/tiny.jsonl.result.json b/other.jsonl.result.json
show b/other.jsonl
mv b/other.jsonl a/tiny.jsonl

# A kept file that is missing, damaged, of another record, or not a file is ignored.
show a/tiny.jsonl
sed '0,/"noise": 0/s//"noise": 1/' first.json >a/tiny.jsonl.result.json
show a/tiny.jsonl
head -c 100 first.json >a/tiny.jsonl.result.json
show a/tiny.jsonl
tiny c '"loss": "cosine"'
mscgym search c.json --quiet >/dev/null
cp c/tiny.jsonl.result.json a/tiny.jsonl.result.json
show a/tiny.jsonl
rm a/tiny.jsonl.result.json
mkdir a/tiny.jsonl.result.json
show a/tiny.jsonl | sed 's/: [^:;]*; it is/: CAUSE; it is/'
mscgym search a.json --quiet >again.txt && cmp again.txt result.txt && echo "the end is none the worse"
rmdir a/tiny.jsonl.result.json
cp first.json a/tiny.jsonl.result.json

# After more trials the figures are computed again.
mscgym resume a/tiny.jsonl --trials 14 --quiet >result.txt
show a/tiny.jsonl
diff <(grep -v '^strategy\|^model' result.txt) shown.txt && echo "after more trials"
cp first.json a/tiny.jsonl.result.json
show a/tiny.jsonl
# --restart sets the kept file aside together with the record.
mscgym search a.json --restart --quiet >/dev/null
ls a | grep result
show a/tiny.jsonl.1
