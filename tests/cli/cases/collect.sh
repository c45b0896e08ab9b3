# `run --inputs --tensor` writes tensors of all samples to one file. Their values are checked by
# tests/model/test_collect.c and check_collect.py.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" "$FILES/inputs.npz" .

# names FILE: names, types and shapes in a .safetensors file.
names() {
    python3 - "$1" <<'PY'
import json, sys
data = open(sys.argv[1], "rb").read()
length = int.from_bytes(data[:8], "little")
for name, entry in json.loads(data[8:8 + length]).items():
    print(name, entry["dtype"], entry["shape"])
PY
}

echo "== all, float and compressed"
try mscgym run tiny.onnx --inputs inputs.npz --tensor '*' -o float.npz --quiet
python3 -c 'import zipfile; z = zipfile.ZipFile("float.npz"); print(z.testzip(), z.namelist())'
tiny a
mscgym search a.json --quiet >/dev/null
for strategy in "" "--strategy a/msc_quantize.json"; do
    mscgym run tiny.onnx --inputs inputs.npz --tensor '*' $strategy -o all.safetensors --samples 7 --quiet
    names all.safetensors
    sha256sum all.safetensors >>sums
done
uniq sums | wc -l

echo "== outputs, and some"
mscgym run tiny.onnx --inputs inputs.npz -o y.safetensors --json --quiet | grep -v numerics
names y.safetensors
mscgym run tiny.onnx --inputs inputs.npz --tensor c --tensor '?' -o y.safetensors --quiet
mscgym run tiny.onnx --inputs inputs.npz --tensor c --tensor '?' -o some.safetensors --quiet
names some.safetensors
mscgym run tiny.onnx --input x="$FILES/x.npy" -o one.safetensors --repeat 0 --quiet && names one.safetensors

echo "== samples of different shapes, and chunks"
mscgym run "$FILES/detect.onnx" --inputs "$FILES/detect.npz" --tensor '*' -o d.safetensors --quiet
names d.safetensors
mscgym run "$FILES/state.onnx" --inputs "$FILES/state.npz" --state h=hn --state c=cn \
    -o s.safetensors --quiet && names s.safetensors

echo "== what does not go"
try mscgym run tiny.onnx --inputs inputs.npz --tensor 'nothing*' -o z.npz --quiet
try mscgym run tiny.onnx --inputs inputs.npz --quiet
try mscgym run tiny.onnx --inputs inputs.npz -o out --quiet
try mscgym run tiny.onnx --inputs inputs.npz --input x="$FILES/x.npy" -o z.npz --quiet
try mscgym run tiny.onnx --inputs inputs.npz -o inputs.npz --quiet
ls
