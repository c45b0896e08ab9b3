# A strategy belongs to the weights that it was found with.
# For other weights --recalibrate computes new scales.
. "$(dirname "$0")/../lib.sh"
model=$FILES/tiny.onnx
other=$FILES/tiny_doubled.onnx # every weight is doubled
run() { mscgym run "$1" --input x="$FILES/x.npy" --repeat 0 --strategy "$2" --output "$3"; }
tiny a '"fix": {"conv.weight": "4 g32", "fc.weight": "5 percentile 99"}'
choices='{"bits": 6, "observer": "mse", "scale": 0.9}, {"bits": 4, "group_size": 32}'
choices="$choices, {\"bits\": 5, \"observer\": \"percentile\", \"percentile\": 99}"
sed -i "s|{\"bits\": 8}, {\"bits\": 4}|$choices|" a.json
mscgym search a.json >/dev/null
cp a/msc_quantize.json s.json
jq -r '.schema, (.edits[] | [.site, .choice, .observer, .range_scale, .percentile, .symmetric] | @csv)' s.json

echo "== where it is refused"
try run "$other" s.json out
try mscgym export --model "$other" --strategy s.json -o no.onnx
tiny b
sed -i "s|\"record\"|\"base\": \"s.json\", &|; s|$model|$other|" b.json
try mscgym search b.json
sed -i "s|$other|$model|" b.json
mscgym search b.json >/dev/null && echo "and taken where the weights are those"
run "$model" s.json out && echo "there too"

echo "== anew"
new() { mscgym export --quiet --recalibrate "$@" -o out.onnx; }
new --model "$model" --strategy s.json --dataset a.json --save-strategy same.json |
    sed 's/[0-9.e-]* with/L with/g'
cmp s.json same.json && echo "on the same weights and samples the same strategy"
new --model "$other" --strategy s.json --dataset a.json --save-strategy new.json --json >losses.json
jq -r '[.loss_after < .loss_before / 10, .samples] | @csv' losses.json
# With doubled weights, the scales of weights and of their results double. The scales of the
# inputs do not change.
jq -r --slurpfile new new.json '.edits[] | . as $e | $new[0].edits[] | select(.site == $e.site) |
    [.site, ([.scales, $e.scales] | transpose | map(.[0] / .[1]) | unique | join(" ")),
     .zero_points == $e.zero_points] | @csv' s.json
# A file of weights gives the same as a model.
cp out.onnx by_model.onnx
mscgym graph "$other" -o doubled.json --quiet >/dev/null
new --model "$model" --weights doubled.safetensors --strategy s.json --dataset a.json --save-strategy by_weights.json >/dev/null
cmp out.onnx by_model.onnx && cmp by_weights.json new.json && echo "by a model or by its weights"
try mscgym export --model "$model" --weights s.json --strategy s.json -o no.onnx
try mscgym export a/tiny.jsonl --weights doubled.safetensors -o no.onnx
mscgym graph "$FILES/../../../examples/digits/digits.onnx" -o digits.json --quiet >/dev/null
try mscgym export --model doubled.json --weights digits.safetensors -o no.onnx
try mscgym export --model "$model" --weights digits.safetensors -o no.onnx | sed "s|$FILES/||"
# A search on the doubled weights finds the same scales.
sed "s|$model|$other|; s|\"a\"|\"c\"|" a.json >c.json
mscgym search c.json --quiet >/dev/null
for trial in $(seq 0 14); do
    mscgym export c/tiny.jsonl --trial $trial --save-strategy c.strategy -o c.onnx 2>/dev/null
    cmp -s c.strategy new.json && echo "a search there finds the same scales"
done | sort -u
run "$other" new.json out && echo "it runs"
try new --model "$other" --strategy s.json --dataset "$FILES/inputs.npz" | sed 's/[0-9.e-]* with/L with/g'

# Searches with different schemes; activations by use.
tiny d '"include": ["conv.weight", "x*"], "weights": {"symmetric": false, "per_channel": false},
    "activations": {"symmetric": true}'
tiny e '"include": ["fc.weight", "flatten*"], "group": "site"'
sed -i 's|"record"|"base": "d/msc_quantize.json", &|' e.json
mscgym search d.json >/dev/null && mscgym search e.json >/dev/null
jq -r '.edits[] | [.site, .axis, .symmetric, (.joints // [])[0]] | @csv' e/msc_quantize.json
new --model "$model" --strategy e/msc_quantize.json --dataset e.json --save-strategy same.json >/dev/null
cmp e/msc_quantize.json same.json && echo "the same strategy again"

echo "== where it does not say how its scales were found"
jq 'del(.edits[] | .observer, .percentile, .range_scale, .symmetric)' s.json >plain.json
run "$model" plain.json out && echo "it runs"
try new --model "$other" --strategy plain.json --dataset a.json
try mscgym export --model "$model" --strategy s.json --recalibrate -o out.onnx
try mscgym export --model "$model" --strategy s.json --dataset a.json -o out.onnx
try mscgym export --model "$model" --recalibrate --dataset a.json -o out.onnx

echo "== of a record"
cp "$model" model.onnx
tiny r
sed -i "s|$model|model.onnx|" r.json
mscgym search r.json --quiet >/dev/null
cp "$other" model.onnx
try mscgym export r/tiny.jsonl --save-strategy r.strategy -o r.onnx --quiet
ls r.strategy r.onnx 2>/dev/null
cp "$model" model.onnx
mscgym export r/tiny.jsonl --save-strategy r.strategy -o r.onnx --quiet
cmp r.strategy r/msc_quantize.json && echo "and taken where the weights are those"
