# A model in float16: it runs in its own type. Searches compute in float32, and exported files have
# float16 where nothing is compressed.
. "$(dirname "$0")/../lib.sh"
model=$FILES/tiny_half.onnx


echo "- a search, its record and its best plan"
tiny a '"exclude": ["fc.weight"]'
sed -i "s|tiny.onnx|tiny_half.onnx|" a.json
mscgym search a.json >/dev/null
mscgym verify a/tiny.jsonl
# Without a choice for fc.weight: 18 weights in at most 8 bits, 96 weights and 5 biases in 16 bits.
jq -s '[.[] | select(.metrics) | .metrics.size_bytes] | min > 202 and max < 238' a/tiny.jsonl
jq -s '.[] | select(.metrics) | .metrics.size_bytes / .metrics.size_ratio' a/tiny.jsonl | sort -u
mscgym graph a/tiny_half.onnx >graph.txt
grep -o '<[^<>]*|float[^>]*>' graph.txt | sort | uniq -c

echo "- the exported model computes the plan"
mscgym run "$model" --input x="$FILES/x.npy" --repeat 0 --strategy a/msc_quantize.json --output plan
mscgym run a/tiny_half.onnx --input x="$FILES/x.npy" --repeat 0 --output exported
cmp plan/y.npy exported/y.npy && echo "the same"

echo "- the layers of the plan, in a report"
mscgym report a/tiny.jsonl --layers --json --quiet >report.json
jq -c '.records[0].layers.layers[] | [.joint, .op, .weight_bits > 0, .error >= 0]' report.json

echo "- without a plan, the file is the same network"
mscgym export --model "$model" -o plain.onnx
diff <(mscgym graph plain.onnx) <(mscgym graph "$model") && echo "the same"
