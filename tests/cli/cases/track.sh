# Two models beside one another. The numbers: tests/pipeline/test_track.c and check_track.py.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" "$FILES/jump.onnx" "$FILES/inputs.npz" .
inputs="--inputs inputs.npz --quiet"

echo "== a model beside itself"
try mscgym track tiny.onnx tiny.onnx $inputs --samples 3

echo "== and compressed"
tiny a
mscgym search a.json --quiet >/dev/null
mscgym track tiny.onnx --strategy a/msc_quantize.json $inputs | sed 's/  *[0-9.e-]*  .*//; s/, to .*//'
mscgym track tiny.onnx --strategy a/msc_quantize.json $inputs --json |
    sed 's/: *-*[0-9][0-9.e-]*/: N/' | grep -v '"joint"\|"tensor"' | sort | uniq -c
mscgym track tiny.onnx --from a/msc_quantize.json --strategy a/msc_quantize.json $inputs | tail -n 1

echo "== what does not go"
try mscgym track tiny.onnx tiny.onnx
try mscgym track tiny.onnx $inputs
try mscgym track tiny.onnx absent.onnx $inputs
try mscgym track tiny.onnx --strategy tiny.onnx $inputs
try mscgym track tiny.onnx jump.onnx $inputs
