# Records that were moved or renamed, or that lost their other files.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/inputs.npz" inputs.npz
tiny a
sed -i "s|$FILES/inputs.npz|inputs.npz|" a.json
mscgym search a.json >/dev/null
cp a/tiny.jsonl.params params

# The record, the inputs and the outputs have other paths, but it is the same search.
mkdir data
mv inputs.npz data/
mv a b
mv b/tiny.jsonl b/other.jsonl
mv b/tiny.jsonl.params b/other.jsonl.params
sed 's|"inputs.npz"|"data/inputs.npz"|; s|"workspace": "a"|"workspace": "b"|
     s|tiny.jsonl|other.jsonl|; s|"quantize": {|"quantize": {"strategy_file": "s.json", |' \
    a.json >b.json
try mscgym search b.json --quiet | tail -n 3
try mscgym search b.json --trials 14 --quiet | tail -n 1
grep -c '"trial"' b/other.jsonl

# Scales that are missing can be computed again on the machine that computed them.
rm b/other.jsonl.params
mkdir c
cp b/other.jsonl c/
sed -i 's|"\.\./inputs.npz"|"../data/inputs.npz"|' c/other.jsonl
try mscgym search b.json --quiet | tail -n 1
cmp b/other.jsonl.params params && echo "made again, the same"

# Scales that are computed from other samples differ from the record's, and are not kept.
rm b/other.jsonl.params
cp "$FILES/inputs_other.npz" data/inputs.npz
try mscgym search b.json --quiet
ls b
cp "$FILES/inputs.npz" data/inputs.npz
sed 's|"batch": 2|"batch": 2, "samples": 10|' b.json >d.json
try mscgym search d.json --quiet

# Scales of another record are refused.
tiny e '"group": "joint"'
mscgym search e.json --quiet >/dev/null
cp e/tiny.jsonl.params b/other.jsonl.params
try mscgym search b.json --quiet
# Scales whose record is gone are computed again.
rm b/other.jsonl
try mscgym search b.json --quiet | tail -n 1
cmp b/other.jsonl.params params && echo "made afresh"
