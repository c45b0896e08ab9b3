# One scale per channel of the activation that a depthwise convolution reads.
. "$(dirname "$0")/../lib.sh"
model=$FILES/depthwise.onnx
tiny a '"activations": {"per_channel": true}, "fix": {"relu*": "4"}'
tiny b '"fix": {"relu*": "4"}'
sed -i "s|$FILES/tiny.onnx|$model|; s|\"labels\"[^,]*, ||" a.json b.json
mscgym search a.json | sed -n 's/^trials: //p'
mscgym verify a/tiny.jsonl
jq -r '.edits[] | [.tensor, .choice, .axis, (.scales | length), (.zero_points | length)] | @csv' \
    a/msc_quantize.json

echo "== less is lost than with one scale"
mscgym search b.json --quiet >/dev/null
for name in a b; do
    jq -r 'select(.id == 0) | .metrics.distill_loss' $name/tiny.jsonl
done | jq -s '.[0] < .[1] / 4'

echo "== made again, on other threads"
rm a/tiny.jsonl.params
mscgym resume a/tiny.jsonl --trials 14 --threads 2 --quiet >/dev/null
mscgym verify a/tiny.jsonl --threads 1

echo "== the same everywhere"
mscgym run "$model" --input x="$FILES/x.npy" --repeat 0 --strategy a/msc_quantize.json --output by_strategy
mscgym export a/tiny.jsonl -o record.onnx
mscgym run record.onnx --input x="$FILES/x.npy" --repeat 0 --output by_model
for name in by_strategy by_model; do # the exported model computes in floats
    tail -c 24 $name/y.npy | od -An -t f4 -w4 | awk '{printf "%.4g\n", $1}' >$name.txt
done
cmp by_strategy.txt by_model.txt && echo "strategy and model"
mscgym export --quiet --model "$model" --strategy a/msc_quantize.json --recalibrate --dataset a.json \
    --save-strategy again.json -o again.onnx >/dev/null
cmp again.json a/msc_quantize.json && echo "found anew, the same strategy"

echo "== what is refused"
sed 's/"generic"/"onnxruntime"/; s/"a"/"c"/' a.json >c.json
try mscgym search c.json
jq '(.edits[] | select(.axis == 1)).tensor = "x:0"' a/msc_quantize.json >bad.json
try mscgym run "$model" --input x="$FILES/x.npy" --repeat 0 --strategy bad.json --output out
