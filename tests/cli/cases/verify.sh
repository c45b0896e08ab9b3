# A record with valid checksums whose trial 3 has a wrong loss.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/forged.jsonl" .
try mscgym verify forged.jsonl
try mscgym verify forged.jsonl --trials 2,3 --json
try mscgym verify forged.jsonl --trials 2

# Another model or other samples under the old names: a warning says so, whatever the trials give.
again() { mscgym verify a/tiny.jsonl --trials 1 2>&1 | sed 's/ is [0-9].*//'; }
tiny a
cp "$FILES/tiny.onnx" "$FILES/inputs.npz" .
sed -i "s|$FILES/tiny.onnx|tiny.onnx|; s|$FILES/inputs.npz|inputs.npz|" a.json
mscgym search a.json >/dev/null
again
cp "$FILES/tiny_doubled.onnx" tiny.onnx
again
cp "$FILES/tiny.onnx" tiny.onnx
cp "$FILES/inputs_other.npz" inputs.npz
again
