# Rounded integers from `rounding` are kept with the record, in the strategy and in the model.
. "$(dirname "$0")/../lib.sh"
model=$FILES/tiny.onnx
choices='{"bits": 4, "observer": "hessian"}, {"bits": 4, "observer": "hessian", "rounding": "gptq"}'
choices="$choices, {\"bits\": 3, \"rounding\": \"descent\", \"correct\": \"affine\", \"group_size\": 32}"
tiny a '"fix": {"conv.weight": "4 hessian gptq", "fc.weight": "3 g32 descent affine"}'
sed -i "s|{\"bits\": 4}|$choices|" a.json
mscgym search a.json | sed -n 's/^trials: //p; s/^ended: //p'
mscgym verify a/tiny.jsonl
jq -r '.edits[] | [.site, .choice, .observer, .rounding, .low, (.integers | length),
    .correct, (.shifts | length)] | @csv' \
    a/msc_quantize.json

echo "== made again, they are the same"
rm a/tiny.jsonl.params
mscgym resume a/tiny.jsonl --trials 14 --threads 1 --quiet >/dev/null
mscgym verify a/tiny.jsonl

echo "== the same everywhere"
mscgym export a/tiny.jsonl -o record.onnx
mscgym export --model "$model" --strategy a/msc_quantize.json -o strategy.onnx
cmp -n 64 record.onnx strategy.onnx && echo "the model by the record and by the strategy"
mscgym run "$model" --input x="$FILES/x.npy" --repeat 0 --strategy a/msc_quantize.json --output by_strategy
mscgym run record.onnx --input x="$FILES/x.npy" --repeat 0 --output by_model
cmp by_strategy/y.npy by_model/y.npy && echo "and what they compute"
mscgym export --quiet --model "$model" --strategy a/msc_quantize.json --recalibrate --dataset a.json \
    --save-strategy again.json -o again.onnx >/dev/null
cmp again.json a/msc_quantize.json && echo "found anew, the same strategy"

echo "== what is refused"
for choice in '"bits": 8, "rounding": "up"' '"bits": 12, "rounding": "gptq"' \
    '"bits": 8, "observer": "hesse"' '"bits": 8, "correct": "linear"' \
    '"bits": 9, "correct": "affine"' '"bits": "eight"'; do
    sed "s|{\"bits\": 8}|{$choice}|; s|\"a\"|\"b\"|" a.json >b.json
    try mscgym search b.json
done
for change in 's/"shifts":[^[]*\[/&1e99, /' 's/"shifts":[^[]*\[/&true, /' 's/"shifts":[^[]*\[/&0.5, /' 's/"integers":[^"]*"..../&~/' 's/"integers":[^"]*"..../&AAAA/' 's/"low":[^,]*-8/"low": -2/'; do
    sed "$change" a/msc_quantize.json >bad.json
    cmp -s bad.json a/msc_quantize.json && echo "no change: $change"
    try mscgym run "$model" --input x="$FILES/x.npy" --repeat 0 --strategy bad.json --output out
done
