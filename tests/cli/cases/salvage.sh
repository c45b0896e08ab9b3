# Damage that no interrupted write could cause: the record is refused, and `salvage` saves valid lines.
. "$(dirname "$0")/../lib.sh"
toy a 40
mscgym search a.json >/dev/null
cp a/toy.jsonl whole.jsonl

# Every trial line is damaged: none is cut off.
sed -i '2,$s/"state":/"state": /' a/toy.jsonl
cp a/toy.jsonl damaged.jsonl
try mscgym resume a/toy.jsonl
try mscgym show a/toy.jsonl
try mscgym show a/toy.jsonl --canonical
try mscgym search a.json
cmp a/toy.jsonl damaged.jsonl && echo "left as it was"
try mscgym salvage a/toy.jsonl -o a/none.jsonl

# The proposed command is quoted for the shell.
cp damaged.jsonl "it's \$HOME.jsonl"
try mscgym show "it's \$HOME.jsonl"

# One line in the middle is damaged.
sed '30s/"state":/"state": /' whole.jsonl >a/toy.jsonl
cp a/toy.jsonl damaged.jsonl
try mscgym resume a/toy.jsonl
try mscgym salvage a/toy.jsonl -o a/new.jsonl
cmp a/toy.jsonl damaged.jsonl && echo "left as it was"
cmp <(head -n 29 whole.jsonl) a/new.jsonl && echo "what counts"
mscgym resume a/new.jsonl --quiet >/dev/null
cmp <(mscgym show whole.jsonl --canonical | tail -n +2) \
    <(mscgym show a/new.jsonl --canonical | tail -n +2) && echo "resumed to the same record"
try mscgym salvage a/toy.jsonl -o a/new.jsonl
mscgym salvage a/toy.jsonl -o a/more.jsonl --json

# An interrupted write at the end: it is reported, cut off and kept in another file.
head -c -20 whole.jsonl >a/toy.jsonl
mscgym show a/toy.jsonl --canonical 2>&1 >/dev/null
mscgym resume a/toy.jsonl 2>&1 >/dev/null
cmp <(mscgym show whole.jsonl --canonical) <(mscgym show a/toy.jsonl --canonical) && echo "whole"
cmp a/toy.jsonl.cut <(tail -n 1 whole.jsonl | head -c -20; echo) && echo "kept"
cp whole.jsonl a/whole.jsonl
try mscgym salvage a/whole.jsonl -o a/copy.jsonl
cmp whole.jsonl a/copy.jsonl && echo "a copy"
try mscgym salvage a/whole.jsonl -o elsewhere.jsonl | sed 's|, /.*/a: |, FOLDER/a: |'

# Files that are not records, a record without any valid line, and a missing output.
try mscgym salvage a.json -o b.jsonl
sed '1s/"seed":"3"/"seed":"4"/' whole.jsonl >a/toy.jsonl
try mscgym salvage a/toy.jsonl -o a/b.jsonl
try mscgym salvage missing.jsonl -o b.jsonl
try mscgym salvage whole.jsonl
ls b.jsonl* a/b.jsonl* 2>/dev/null

# The stored scales of a network are copied as well.
tiny t
mscgym search t.json --quiet >/dev/null
mscgym salvage t/tiny.jsonl -o t/new.jsonl
cmp t/tiny.jsonl.params t/new.jsonl.params && mscgym verify t/new.jsonl

# A file without a newline has no valid line: a search starts there and keeps its content.
toy n 40
mkdir n
tr -d '\n' <whole.jsonl >n/toy.jsonl
cp n/toy.jsonl damaged.jsonl
try mscgym resume n/toy.jsonl
mscgym search n.json --quiet >/dev/null
cmp n/toy.jsonl.cut <(cat damaged.jsonl; echo) && echo "kept, too"
