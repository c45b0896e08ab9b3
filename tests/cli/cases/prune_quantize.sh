# Pruning, then quantisation: each search starts from the best plan of the search before it. The
# result is a single strategy.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
model=$digits/digits.onnx

# digits NAME: two searches for channels, then two for bits.
digits() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "error", "model": "$model",
  "dataset": {"inputs": "$digits/calibration.npz", "labels": "$digits/calibration_labels.npy", "batch": 64,
              "validation": {"inputs": "$digits/validation.npz", "labels": "$digits/validation_labels.npy"}},
  "prune": {"gym": [
    {"env": {"choices": [{"density": 1}, {"density": 0.75}, {"density": 0.5}],
             "bounds": {"macs_ratio": {"max": 0.6}}},
     "agent": {"type": "evolutionary", "population": 4}, "budget": {"trials": 8}, "parallel": 4},
    {"env": {"choices": [{"density": 1}, {"density": 0.75}],
             "bounds": {"macs_ratio": {"max": 0.45}}},
     "agent": {"type": "evolutionary", "population": 4}, "budget": {"trials": 8}, "parallel": 4}]},
  "quantize": {"target": "generic", "gym": [
    {"env": {"choices": [{"bits": 8}, {"bits": 4}], "bounds": {"bit_ops_ratio": {"max": 0.02}}},
     "agent": {"type": "evolutionary", "population": 4}, "budget": {"trials": 8}, "parallel": 4},
    {"env": {"choices": [{"bits": 6, "rounding": "descent", "correct": "affine"}], "include": ["*.weight"]},
     "agent": {"type": "random"}, "budget": {"trials": 1}, "parallel": 4}]}
}
END_OF_CONFIG
}

# loss STRATEGY: relative loss of the model with the strategy on all samples, by `track`.
loss() {
    mscgym track "$model" --strategy "$1" --inputs "$digits/calibration.npz" --samples 0 --json 2>/dev/null |
        jq '.tensors[-1].snr_db | pow(10; -. / 10)'
}

digits a
mscgym search a.json >/dev/null
for name in prune_0 prune_1 quantize_0 quantize_1; do
    mscgym show a/$name.jsonl --json >$name.result
    mscgym verify a/$name.jsonl
    mscgym export a/$name.jsonl -o /dev/null --save-strategy $name.json 2>/dev/null ||
        mscgym export a/$name.jsonl -o $name.onnx --save-strategy $name.json
    # The reported loss equals the loss of the strategy applied to the whole model.
    jq -n --argjson loss "$(loss $name.json)" --slurpfile r $name.result \
        '($r[0].winner.metrics.distill_loss / $loss - 1) | fabs < 1e-4'
done
cmp quantize_1.json a/msc_quantize.json && cmp quantize_1.onnx a/digits.onnx && echo "one strategy, one model"

echo "== channels that are left of those that are left, and of the whole model's"
jq -c '[.prune[] | [.group, .units, (.kept | length), (.kept | . == unique)]]' prune_1.json
jq -c -n --slurpfile first prune_0.json --slurpfile second prune_1.json \
    '[$second[0].prune[].kept] as $kept | [range(3) | $kept[.] - $first[0].prune[.].kept] | flatten'
jq -c '[.prune, .replace]' prune_1.json | cmp - <(jq -c '[.prune, .replace]' quantize_1.json) && echo "kept by bits"

echo "== ratios are those of the whole model"
# With 4 and 8 bits everywhere, bit operations are 1/64 and 1/16 of the float model's, times the share
# of MACs that remain after pruning.
jq -c -n --slurpfile p prune_1.result --slurpfile q quantize_0.result '
    $p[0].winner.metrics.macs_ratio as $left |
    [$q[0].baselines[] | .metrics.bit_ops_ratio / $left | . * 1024 | round],
    $p[0].winner.metrics.macs == $q[0].winner.metrics.macs,
    ($q[0].winner.examined.validation.float_accuracy == $p[0].winner.examined.validation.float_accuracy),
    $q[0].reference.metrics.size_bytes'

echo "== killed anywhere"
digits b
for i in 1 2 3 4 5 6 7 8; do
    (mscgym search b.json >/dev/null 2>&1 & sleep 0.0$((i * 7 % 10)); kill -9 $!; wait) 2>/dev/null
done
mscgym search b.json >/dev/null 2>/dev/null
for name in prune_0 prune_1 quantize_0 quantize_1; do
    cmp <(mscgym show a/$name.jsonl --canonical | tail -n +2) <(mscgym show b/$name.jsonl --canonical | tail -n +2)
    cmp a/$name.jsonl.params b/$name.jsonl.params
done
cmp a/msc_quantize.json b/msc_quantize.json && cmp a/digits.onnx b/digits.onnx && echo same

echo "== from a strategy file"
jq 'del(.prune) | .workspace = "c" | .quantize.gym[0].base = "a/msc_prune.json" | .quantize.gym |= [.[0]]' a.json >c.json
mscgym search c.json >/dev/null
cmp c/msc_quantize.json quantize_0.json && echo same

echo "== what cannot be"
jq '.prune.gym |= [.[0] + {base: "quantize_0.json", record: "late.jsonl"}] | del(.quantize)' a.json >late.json
try mscgym search late.json
jq '.quantize.gym[0].env.loss_tensors = ["/2/Conv_output_0"]' c.json | sed 's/"c"/"d"/' >d.json
try mscgym search d.json
jq '.prune.gym |= [.[0] | .env.choices = [{density: 0.5}]] | .quantize.gym |= [.[0] | .record = "e.jsonl"] | .workspace = "a"' a.json |
    jq '.prune.gym[0].record = "e0.jsonl"' >e.json
mscgym search e.json --entry 'prune[0]' >/dev/null
mscgym search e.json --entry 'quantize[0]' >/dev/null
rm a/e0.jsonl*
jq '.prune.gym[0].env.choices = [{density: 0.5, criterion: "l1"}]' e.json >f.json
mscgym search f.json --entry 'prune[0]' >/dev/null
try mscgym search f.json --entry 'quantize[0]'
