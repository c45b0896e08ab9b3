# The tiny network from search to export.
. "$(dirname "$0")/../lib.sh"
tiny a '"bounds": {"size_ratio": {"max": 0.9}}'
mscgym search a.json >result.txt
sed -n 's/^trials: //p; s/^ended: //p; s/^strategy: //p; s/^model: //p' result.txt
grep -c '  winner: ' result.txt
ls a
mscgym verify a/tiny.jsonl
mscgym show a/tiny.jsonl --best | sed -n 's/^  \([^ ]*\) .*/\1/p'
mscgym export a/tiny.jsonl -o again.onnx
cmp again.onnx a/tiny.onnx && echo "export gives the search's model"
mscgym export --model "$FILES/tiny.onnx" --strategy a/msc_quantize.json -o third.onnx
cmp -n 64 third.onnx again.onnx && echo "by the strategy file as well"
mscgym export --model "$FILES/tiny.onnx" -o plain.onnx
mscgym run plain.onnx --input x="$FILES/x.npy" --output plain --repeat 3 |
    sed 's/: .* us median/: N us median/; s/(.*)/(...)/'
mscgym run "$FILES/tiny.onnx" --input x="$FILES/x.npy" --output float --repeat 0
cmp plain/y.npy float/y.npy && echo "a plain export computes the same"
mscgym run "$FILES/tiny.onnx" --input x="$FILES/x.npy" --output small --repeat 0 \
    --strategy a/msc_quantize.json --threads 2
mscgym run "$FILES/tiny.onnx" --input x="$FILES/x.npy" --output small1 --repeat 0 \
    --strategy a/msc_quantize.json --threads 1
cmp small/y.npy small1/y.npy && echo "threads do not matter"
cmp -s small/y.npy float/y.npy || echo "the strategy does something"
mscgym graph "$FILES/tiny.onnx" --sites
mscgym graph "$FILES/tiny.onnx" --prototxt | head -n 3
mscgym graph "$FILES/tiny.onnx" --placement --bind N=4 | grep -c 'float32.*MACs'
mscgym graph "$FILES/tiny.onnx" --json >tiny.json && echo "as JSON"

# From the record only, in another folder, without the stored scales: they are computed again.
rm a/tiny.jsonl.params
(mkdir elsewhere && cd elsewhere && mscgym resume ../a/tiny.jsonl --trials 14 --quiet >/dev/null)
mscgym verify a/tiny.jsonl
ls a

# A configuration with all defaults written out continues the record; one that differs is refused.
mscgym config --show a.json >full.json
mscgym search full.json --trials 15 --quiet >/dev/null
sed 's/"symmetric": *false/"symmetric": true/' full.json >else.json
cmp -s full.json else.json || try mscgym search else.json --trials 16 --quiet
mscgym verify a/tiny.jsonl
