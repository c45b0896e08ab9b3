# The combined search over channels and bits: one bound, one strategy.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
model=$digits/digits.onnx

# digits NAME TARGET [MEMBERS [KEYS]]: writes NAME.json; MEMBERS are further members of the environment,
# KEYS further keys of the search.
digits() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "error", "model": "$model",
  "dataset": {"inputs": "$digits/calibration.npz", "labels": "$digits/calibration_labels.npy", "batch": 64,
              "validation": {"inputs": "$digits/validation.npz", "labels": "$digits/validation_labels.npy"}},
  "joint": {"target": "$2", "gym": [{
    "record": "digits.jsonl",
    "env": {"prune": {"choices": [{"density": 1}, {"density": 0.75}, {"density": 0.5}]},
            "choices": [{"bits": 8}, {"bits": 6}, {"bits": 4, "rounding": "descent", "correct": "affine"}],
            "bounds": {"bit_ops_ratio": {"max": 0.03}}${3:+, $3}},
    "agent": {"type": "evolutionary", "population": 4}, "budget": {"trials": 24}, "parallel": 4${4:+, $4}
  }]}
}
END_OF_CONFIG
}

# loss STRATEGY: relative loss of the model with the strategy on all samples, by `track`.
loss() {
    mscgym track "$model" --strategy "$1" --inputs "$digits/calibration.npz" --samples 0 --json 2>/dev/null |
        jq '.tensors[-1].snr_db | pow(10; -. / 10)'
}

for target in generic onnxruntime; do
    digits $target $target
    mscgym search $target.json >/dev/null
    mscgym show $target/digits.jsonl --json >$target.result
    jq -c '.winner | .state, .metrics.bit_ops_ratio <= 0.03, (.metrics.distill_loss < 0.002),
        (.examined.validation | .float_accuracy - .accuracy < 0.01)' $target.result
    mscgym verify $target/digits.jsonl
    # The reported loss equals the loss of the strategy applied to the whole model.
    jq -n --argjson loss "$(loss $target/msc_joint.json)" --slurpfile r $target.result \
        '($r[0].winner.metrics.distill_loss / $loss - 1) | fabs < 1e-4'
    jq -c '[has("prune", "replace", "edits")]' $target/msc_joint.json
    mscgym export $target/digits.jsonl -o $target.onnx --save-strategy strategy.json
    cmp $target.onnx $target/digits.onnx && cmp strategy.json $target/msc_joint.json && echo "from the record"
    mscgym export --model "$model" --strategy strategy.json -o other.onnx
    mscgym graph $target.onnx --json >one.graph && mscgym graph other.onnx --json | cmp - one.graph && echo "from the strategy"
done

echo "== the same in parts, on other threads, killed"
digits parts onnxruntime
mscgym search parts.json --trials 3 >/dev/null
mscgym resume parts/digits.jsonl --trials 8 --threads 1 >/dev/null
for i in 1 2 3 4; do
    (mscgym resume parts/digits.jsonl --trials 24 >/dev/null 2>&1 & sleep 0.0$((i * 7 % 10)); kill -9 $!; wait) 2>/dev/null
done
mscgym resume parts/digits.jsonl --trials 24 --threads 4 >/dev/null
cmp <(mscgym show onnxruntime/digits.jsonl --canonical | tail -n +2) <(mscgym show parts/digits.jsonl --canonical | tail -n +2) &&
    cmp onnxruntime/digits.jsonl.params parts/digits.jsonl.params &&
    cmp onnxruntime/msc_joint.json parts/msc_joint.json && cmp onnxruntime/digits.onnx parts/digits.onnx && echo same

echo "== costs are those of bits on what is left, file for file"
for target in generic onnxruntime; do
    for density in 0.75 0.5; do
        jq ".workspace = \"turn\" | .joint.gym[0].env as \$env | .quantize = .joint | del(.joint) |
            .prune = {gym: [{env: {choices: [{density: $density}]}, budget: {trials: 0}}]} |
            .quantize.gym[0] |= (.env = (\$env | del(.prune, .bounds)) | .budget.trials = 0 | .agent = {type: \"random\"})" \
            $target.json >turn.json
        mscgym search turn.json --restart >/dev/null
        mscgym show turn/digits.jsonl --json >turn.result
        jq -c -n --slurpfile a $target.result --slurpfile b turn.result '
            [$a[0].baselines[] | select(.label | startswith("'$density', ")) | .metrics | [.size_bytes, .bit_ops, .macs]] as $one |
            [$b[0].baselines[].metrics | [.size_bytes, .bit_ops, .macs]] as $other |
            [($one | length), $one == $other]'
    done
done

echo "== without repair; with all that rests on masks alone"
digits masks generic '"weights": {"per_channel": false}, "group": "joint"'
sed -i 's/"prune": {/"prune": {"repair": false, "ridge": 0.1, /' masks.json
mscgym search masks.json >/dev/null
mscgym verify masks/digits.jsonl
jq -n --argjson loss "$(loss masks/msc_joint.json)" --argjson r "$(mscgym show masks/digits.jsonl --json)" \
    '($r.winner.metrics.distill_loss / $loss - 1) | fabs < 1e-4'

echo "== what cannot be"
digits grouped generic
sed -i 's/{"bits": 8}/{"bits": 8, "group_size": 32}/' grouped.json
try mscgym search grouped.json
digits bound generic
sed -i 's/0.03/0.001/' bound.json
try mscgym search bound.json
digits key generic
sed -i 's/"prune": {/"prune": {"densty": 1, /' key.json
try mscgym search key.json
digits stage generic '' '"distill": true'
try mscgym search stage.json
digits based generic "" "\"base\": \"strategy.json\""
try mscgym search based.json
mscgym envs joint | head -n 3
