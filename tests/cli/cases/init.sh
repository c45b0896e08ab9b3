# The first configuration of a model: the search that it asks for runs, and better than `quantize` within its bound.
cp "$FILES/../../../examples/digits/"{digits.onnx,calibration.npz,calibration_labels.npy} .
mkdir to
mscgym init digits.onnx --inputs calibration.npz --target onnxruntime --time 1h -o to/search.yaml 2>&1 | sed 's/: runtime onnx.*//'
cat to/search.yaml
mscgym search --quiet to/search.yaml --trials 40 >/dev/null && jq -r '.entries[0].winner.metrics.size_ratio <= .21' \
    to/msc_workspace/quantize_0.jsonl.result.json
mscgym init --json digits.onnx --inputs calibration.npz --labels calibration_labels.npy --target generic -o 'a b.yaml' |
    jq -c 'del(.runtime)'
grep -e labels -e objectives -e accuracy 'a b.yaml'
mscgym config --show 'a b.yaml' >/dev/null && echo "read"
# A name may hold control characters that YAML refuses.
cp digits.onnx $'a\x7f\xc2\x85.onnx'
mscgym init --json $'a\x7f\xc2\x85.onnx' --inputs calibration.npz -o odd.yaml >/dev/null &&
    mscgym config --show odd.yaml | jq -ac .model
rm a*.onnx odd.*
# Targets that take only 8 bits.
for target in openvino tensorrt tflite; do
    mscgym init digits.onnx --inputs calibration.npz --target "$target" -o "$target.yaml" --json | jq -c .size_ratio
    mscgym search --quiet "$target.yaml" --trials 10 --record "$target.jsonl" >/dev/null && jq -r \
        '.entries[0].winner.metrics.size_ratio <= .34' "$target.jsonl.result.json"
done
grep -A8 gym: tflite.yaml
rm -r ./*.jsonl*

mscgym init digits.onnx --inputs calibration.npz -o to/search.yaml 2>&1
mscgym init digits.onnx --inputs calibration.npz -o new.json 2>&1
mscgym init digits.onnx --inputs calibration.npz --time soon -o new.yaml 2>&1
mscgym init digits.onnx 2>&1
mscgym init digits.onnx --inputs no.npz -o new.yaml 2>&1
mscgym init digits.onnx --inputs calibration_labels.npy -o new.yaml 2>&1
ls
