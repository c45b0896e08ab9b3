# Bounds on the drop of a metric from the float model.
. "$(dirname "$0")/../lib.sh"
drop() { # NAME BOUND [MORE]: a search of the tiny network for the smallest plan within the bound
    tiny "$1" "\"objectives\": [\"size_bytes\"], \"bounds\": {$2}${3:+, $3}"
}
lines() { sed -n '/^accuracy_drop/p; s/   */  /g; /^  .*accuracy\|^no trial\|^error\|^exit/p'; }

echo "- kept, on the samples of the search and on the validation samples"
drop a '"accuracy_drop": 0.1'
try mscgym search a.json >said.txt
lines <said.txt
mscgym show a/tiny.jsonl | lines | cmp - <(lines <said.txt | grep -v exit) && echo "show says the same"
head -n 1 a/tiny.jsonl | jq -c '.bounds'
mscgym verify a/tiny.jsonl
mscgym verify a/tiny.jsonl --json | jq -c .drops
mscgym search a.json --restart --dry-run | grep '^accuracy'
mscgym search a.json --restart --dry-run --json | jq -c '.[0].estimate.drops'

echo "- a search that is continued keeps the limit, and a search with another bound is refused"
mscgym search a.json --trials 14 --quiet >/dev/null
mscgym verify a/tiny.jsonl
try mscgym search a.json --accuracy-drop 0.2

echo "- other forms"
drop b '"accuracy": {"drop": 0.1, "relative": true}'
mscgym search b.json | lines
mscgym search b.json --accuracy-drop 0.1 --restart | grep '^accuracy_drop'
for bound in '"accuracy_drop": "1%"' '"accuracy_drop": 1' '"accuracy_drop": -0.1' '"accuracy_drop_ratio": 1' \
    '"accuracy": {"drop": 0.1, "relativ": true}' '"accuracy": {"drop": 0.1, "relative": 1}' '"accuracy": {"relative": true}' \
    '"accuracy": 0.1' '"distill_loss": {"drop": 0.1, "relative": true}' '"file_size_drop": 3' \
    '"accuracy_drop": 0.1, "accuracy": {"min": 0.5}'; do
    drop e "$bound"
    try mscgym search e.json
done
try mscgym search e.json --accuracy-drop 1%
drop u '"accuracy_drop": 0.1'
sed -i 's/"labels": "[^"]*", //' u.json
try mscgym search u.json

echo "- nothing keeps it"
drop f '"accuracy_drop": 0, "size_ratio": {"max": 0.2}' '"weights": {"symmetric": true}'
sed -i 's/{"bits": 8}, {"bits": 4}/{"bits": 2}/' f.json
try mscgym search f.json >said.txt
lines <said.txt
ls f

echo "- plans that keep it only on the samples of the search are left out"
digits=$FILES/../../../examples/digits
cat >d.json <<END
{"workspace": "d", "verbose": "error", "model": "$digits/digits.onnx",
 "dataset": {"inputs": "$digits/calibration.npz", "labels": "$digits/calibration_labels.npy", "batch": 64,
             "validation": {"inputs": "$digits/validation.npz", "labels": "$digits/validation_labels.npy"}},
 "quantize": {"target": "generic", "gym": [{
   "record": "d.jsonl", "env": {"choices": [{"bits": 8}, {"bits": 3}, {"bits": 2}], "objectives": ["size_bytes"],
                                "bounds": {"accuracy_drop": 0.01}}, "budget": {"trials": 40}}]}}
END
mscgym search d.json --json >d.result
jq -c '.[0] | [.winner.state, .winner.examined.accuracy_drop <= 0.01, .winner.examined.validation.accuracy_drop <= 0.01,
    (.left_out | length > 0), ([.left_out[] | .held_out and .drop > 0.01] | all),
    (.winner.id as $id | [.left_out[].id] | index($id))]' d.result
mscgym show d/d.jsonl | grep -c '[0-9] better trials* .* left out, as the drop there is more'
jq '.[0].winner.id' d.result >found.txt
mscgym show d/d.jsonl --json | jq '.winner.id' | cmp - found.txt && echo "show has the same winner"
mscgym report d/d.jsonl -o d.html >/dev/null
grep -o 'The drop of accuracy is [0-9.-]* % (standard error [0-9.]* %) on 540 validation samples' d.html | sort -u | wc -l

echo "- a bound that the only plan keeps, but not on the validation samples"
sed 's/"d"/"n"/; s/{"bits": 8}, {"bits": 3}, //; s/0.01/0.9/' d.json >n.json
bound=$(mscgym search n.json --json | jq '.[0].winner.examined | (.accuracy_drop + .validation.accuracy_drop) / 2')
sed "s/0\.9/$bound/; s/\"n\"/\"m\"/" n.json >m.json
try mscgym search m.json 2>&1 | sed "s/at most [0-9.]* %/at most BOUND/; s/least is [0-9.]* %/least is X/" | lines | grep -v '^  '
ls m
try mscgym export m/d.jsonl -o m.onnx
mscgym report m/d.jsonl -o m.html >/dev/null
grep -o 'There is nothing to deploy: [^.]*\.' m.html | head -n 1

echo "- any environment that knows the float model"
toy t 8 '"bounds": {"size_bytes_drop": 0}'
try mscgym search t.json >said.txt
grep '^size_bytes_drop\|exit' said.txt

echo "- quantize"
small() { try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o small.onnx --effort fast "$@"; }
export MSCGYM_RUNTIME=no/runtime
small --labels "$FILES/labels.npy" --accuracy-drop 0.1 | lines
small --accuracy-drop 0.1
small --labels "$FILES/labels.npy" --accuracy-drop x
