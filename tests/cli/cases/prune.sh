# Channel pruning: searched, resumed, verified, exported to a smaller file, and run from the strategy.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
model=$digits/digits.onnx

# digits NAME [MEMBERS]: writes NAME.json; MEMBERS are further members of the environment.
digits() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "error", "model": "$model",
  "dataset": {"inputs": "$digits/calibration.npz", "batch": 64,
              "validation": {"inputs": "$digits/validation.npz", "labels": "$digits/validation_labels.npy"}},
  "prune": {"gym": [{
    "record": "digits.jsonl",
    "env": {"choices": [{"density": 1}, {"density": 0.75}, {"density": 0.5}, {"density": 0.5, "criterion": "l2"}],
            "bounds": {"macs_ratio": {"max": 0.4}}${2:+, $2}},
    "agent": {"type": "evolutionary", "population": 4}, "budget": {"trials": 16}, "parallel": 4
  }]}
}
END_OF_CONFIG
}

digits a
mscgym search a.json >/dev/null
mscgym show a/digits.jsonl --json >a.result
jq -c '.winner | .state, .metrics.macs_ratio <= 0.4, .metrics.size_ratio < 0.6,
    .examined.validation.float_accuracy - .examined.validation.accuracy < 0.01' a.result
mscgym verify a/digits.jsonl

echo "== the same in parts, and on other threads"
digits b
mscgym search b.json --trials 3 >/dev/null
mscgym resume b/digits.jsonl --trials 16 --threads 1 >/dev/null
cmp <(mscgym show a/digits.jsonl --canonical | tail -n +2) <(mscgym show b/digits.jsonl --canonical | tail -n +2) &&
    cmp a/digits.jsonl.params b/digits.jsonl.params && cmp a/msc_prune.json b/msc_prune.json &&
    cmp a/digits.onnx b/digits.onnx && echo same

echo "== a smaller file, which gives what the strategy gives"
[ "$(stat -c %s a/digits.onnx)" -lt $(($(stat -c %s "$model") * 7 / 10)) ] && echo smaller
mscgym export a/digits.jsonl -o record.onnx --save-strategy record.json
cmp record.onnx a/digits.onnx && cmp record.json a/msc_prune.json && echo "from the record"
mscgym export --model "$model" --strategy a/msc_prune.json -o strategy.onnx
mscgym graph strategy.onnx --json | jq -c '[.. | .weights? // empty | .[]? | select(.layout == "OIHW") | .shape]' | head -n 1
python3 -m zipfile -e "$digits/validation.npz" .
mscgym run "$model" --strategy a/msc_prune.json --input image=image.npy --output one >/dev/null
mscgym run strategy.onnx --input image=image.npy --output other >/dev/null
close one/*.npy other/*.npy && echo "the same outputs"

echo "== what cannot be"
try mscgym export --model a/digits.onnx --strategy a/msc_prune.json -o no.onnx
try mscgym export --model "$model" --strategy a/msc_prune.json --recalibrate --dataset "$digits/calibration.npz" -o no.onnx
digits c '"include": ["nobody"]'
try mscgym search c.json
digits d '"bounds": {"macs_ratio": {"max": 0.1}}'
sed -i 's/"bounds": {"macs_ratio": {"max": 0.4}}, //' d.json
try mscgym search d.json

jq '.quantize = {gym: [{base: "a/msc_prune.json"}]} | .gym = []' a.json |
    jq '.quantize.gym += [{record: "late.jsonl", env: (.quantize.gym[0].env + {type: "prune"})}]' >late.json
try mscgym search late.json

echo "== as the RFC has it"
cat >rfc.json <<END_OF_CONFIG
{
  "workspace": "rfc", "verbose": "error", "model": "$model",
  "dataset": {"inputs": "$digits/calibration.npz", "batch": 64},
  "prune": {
    "strategy_file": "msc_prune.json",
    "target": "tensorrt",
    "gym": [
      {
        "record": "searched_config.json",
        "env": {"strategy": "distill_loss"},
        "agent": {"type": "grid_search"}
      }
    ]
  }
}
END_OF_CONFIG
mscgym search rfc.json >/dev/null
mscgym show rfc/searched_config.json --json | jq -c '[.space // .baselines | length], .winner.state, .winner.choices'
echo '{"workspace": "plain", "verbose": "error", "model": "'"$model"'", "prune": {},
    "dataset": {"inputs": "'"$digits"'/calibration.npz", "batch": 64}}' >plain.json
mscgym search plain.json >/dev/null
mscgym show plain/prune_0.jsonl --json | jq -c '.winner.label, .winner.metrics.macs_ratio < 0.75'
