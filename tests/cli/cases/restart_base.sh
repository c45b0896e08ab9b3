# A record that was set aside keeps its own start strategy, whatever the new search does.
. "$(dirname "$0")/../lib.sh"
config() {
    cat >c.json <<END
{
  "workspace": "w", "verbose": "error", "model": "$FILES/tiny.onnx",
  "dataset": {"inputs": "$FILES/inputs.npz", "batch": 4},
  "quantize": {"target": "generic", "gym": [
    {"env": {"choices": [{"bits": 8}, {"bits": 4}], "include": ["*weight"],
             "bounds": {"size_bytes": {"max": $1}}},
     "agent": {"type": "random"}, "budget": {"trials": 2}, "parallel": 2},
    {"record": "b.jsonl", "baseline": "greedy",
     "env": {"choices": [{"bits": 8}, {"bits": 4}], "exclude": ["*weight"]},
     "agent": {"type": "random"}, "budget": {"trials": 2}, "parallel": 2}
  ]}
}
END
}
config 300
mscgym search c.json >/dev/null
ls w
mscgym export w/b.jsonl -o before.onnx >/dev/null
cp w/b.jsonl.base.json base.json
config 110
mscgym search c.json --restart >/dev/null
ls w
cmp -s base.json w/b.jsonl.base.json || echo "the new search starts from another strategy"
cmp base.json w/b.jsonl.1.base.json && echo "the old one from what it did"
for record in b.jsonl b.jsonl.1 b.greedy.jsonl b.greedy.jsonl.1; do
    try mscgym verify w/$record
done
mscgym export w/b.jsonl.1 -o after.onnx >/dev/null
cmp before.onnx after.onnx && echo "the same model"
try mscgym resume w/b.jsonl.1 | tail -n 1
# Without that strategy it can be evaluated only if the same strategy is given again.
rm w/b.jsonl.1.base.json
try mscgym verify w/b.jsonl.1
cp base.json w/b.jsonl.base.json
try mscgym verify w/b.jsonl.1
# If a record was renamed by hand together with its other files, it keeps its start strategy, too.
rm w/b.jsonl.base.json
mv w/b.greedy.jsonl.1 w/old.jsonl
mv w/b.greedy.jsonl.1.base.json w/old.jsonl.base.json
try mscgym verify w/old.jsonl
