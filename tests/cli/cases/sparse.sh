# Pruning single weights: searched together with channels, resumed, verified, exported with zeros,
# then quantised.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
model=$digits/digits.onnx

# digits NAME CHOICES [MEMBERS]: writes NAME.json; MEMBERS are further members of the environment.
digits() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "error", "model": "$model",
  "dataset": {"inputs": "$digits/calibration.npz", "batch": 64},
  "prune": {"gym": [{
    "record": "digits.jsonl",
    "env": {"choices": $2${3:+, $3}},
    "agent": {"type": "evolutionary", "population": 4}, "budget": {"trials": 12}, "parallel": 4
  }]}
}
END_OF_CONFIG
}
both='[{"density": 1}, {"density": 0.75}, {"sparsity": 0}, {"pattern": "2:4"}, {"sparsity": 0.7, "criterion": "energy"}]'

digits a "$both" '"bounds": {"size_ratio": {"max": 0.5}}'
mscgym search a.json >/dev/null
head -n 1 a/digits.jsonl | jq -c '[.space.tasks[] | [.name, (.labels // .choices | length)]]'
mscgym show a/digits.jsonl --json | jq -c '.winner | .state, .metrics.size_ratio <= 0.5, .metrics.distill_loss < 0.02'
mscgym verify a/digits.jsonl

echo "== the same in parts, and on other threads"
digits b "$both" '"bounds": {"size_ratio": {"max": 0.5}}'
mscgym search b.json --trials 3 >/dev/null
mscgym resume b/digits.jsonl --trials 12 --threads 1 >/dev/null
cmp <(mscgym show a/digits.jsonl --canonical | tail -n +2) <(mscgym show b/digits.jsonl --canonical | tail -n +2) &&
    cmp a/digits.jsonl.params b/digits.jsonl.params && cmp a/msc_prune.json b/msc_prune.json &&
    cmp a/digits.onnx b/digits.onnx && echo same

echo "== every four input channels of a kernel position keep two"
digits c '[{"pattern": "2:4"}]'
mscgym search c.json >/dev/null
jq -r '.replace[] | select(.tensor == "2.weight") | .elements' c/msc_prune.json | base64 -d | od -An -v -t x4 -w4 |
    awk '{ out = int((NR - 1) / 144); k = (NR - 1) % 144; n[out, k % 9, int(k / 9 / 4)] += $1 != "00000000" && $1 != "80000000" }
         END { for (i in n) count[n[i]]++; for (i in count) print count[i] " fours with " i }'
python3 -m zipfile -e "$digits/validation.npz" .
mscgym run "$model" --strategy c/msc_prune.json --input image=image.npy --output one >/dev/null
mscgym run c/digits.onnx --input image=image.npy --output other >/dev/null
close one/*.npy other/*.npy && echo "the same outputs"

echo "== then quantised"
jq '.quantize = {gym: [{env: {choices: [{bits: 8}]}, budget: {trials: 0}}]}' c.json >d.json
sed -i 's/"workspace": "c"/"workspace": "d"/' d.json
mscgym search d.json >/dev/null
mscgym show d/quantize_0.jsonl --json | jq -c '.winner.metrics.distill_loss < 0.01'

echo "== what cannot be"
digits e '[{"sparsity": 0.6, "pattern": "2:4"}]'
try mscgym search e.json
digits f '[{"pattern": "4:2"}]'
try mscgym search f.json
digits g '[{"density": 0.5, "sparsity": 0.5}]'
try mscgym search g.json
jq '.joint = {gym: [{env: {prune: {choices: [{pattern: "2:4"}]}}}]} | del(.prune)' c.json >h.json
try mscgym search h.json
