# Damaged or unsuitable models, arrays and records: each is reported in one line and leaves no file.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/*.onnx "$FILES"/*.npz "$FILES"/*.npy .
with() { # with MODEL INPUTS [MEMBERS]: searches; MEMBERS are further members of the dataset
    cat >c.json <<END
{"verbose": "error", "model": "$1", "dataset": {"inputs": "$2"${3:+, $3}},
 "quantize": {"gym": [{"budget": {"trials": 2}}]}}
END
    try mscgym search c.json
}
head -c 500 tiny.onnx >cut.onnx
with missing.onnx inputs.npz
with cut.onnx inputs.npz
with unknown_op.onnx inputs.npz
with nan_weight.onnx inputs.npz
: >empty.onnx
with empty.onnx inputs.npz
with tiny.onnx missing.npz
with tiny.onnx inputs_uint8.npz
with tiny.onnx inputs_shape.npz
with tiny.onnx inputs_name.npz
head -c 700 inputs.npz >cut.npz
# The reason depends on the version of libzip.
with tiny.onnx cut.npz | sed 's/ ([^)]* zip archive)/ (REASON)/'
with tiny.onnx inputs.npz '"labels": "x.npy"'
with tiny.onnx inputs.npz '"validation": 0.01'
with tiny.onnx inputs.npz '"validation": {"inputs": "inputs_shape.npz"}'
with tiny.onnx inputs.npz '"samples": 4' | tail -n 1
try mscgym search c.json --bind N=4
try mscgym search c.json --bind H=4
try mscgym search c.json --device abacus

echo "== what stands in the place of something else"
try mscgym search tiny.onnx
try mscgym run tiny.onnx --input x=inputs.npz
try mscgym run tiny.onnx --inputs nowhere -o y.npz --quiet

echo "== folders and files in the place of one another"
try mscgym search .
try mscgym show .
try mscgym run tiny.onnx --input x=x.npy --output x.npy
try mscgym run tiny.onnx --input x=x.npy --output labels.npy/out
echo "version https://git-lfs.github.com/spec/v1" >pointer.npz
with tiny.onnx pointer.npz

try mscgym run tiny.onnx
try mscgym run tiny.onnx --input image=x.npy
try mscgym run tiny.onnx --input x
try mscgym run tiny.onnx --input x=missing.npy
try mscgym run tiny.onnx --input x=labels.npy
try mscgym run tiny.onnx --input x=x.npy --strategy c.json
try mscgym run tiny.onnx --input x=x.npy --strategy tiny.onnx
try mscgym run tiny.onnx --input x=x.npy --strategy msc_workspace/quantize_0.jsonl
try mscgym graph cut.onnx
try mscgym export --model tiny.onnx --strategy missing.json -o o.onnx
try mscgym export --model tiny.onnx -o o.json
ls *.tmp* o.onnx 2>/dev/null

# A record with an incomplete last line, then with an invalid member.
record=msc_workspace/quantize_0.jsonl
printf '{"kind":"trial","id"' >>$record
try mscgym show $record | tail -n 1
sed -i '2s/"state":"[a-z]*"/"state":"wonderful"/' $record
try mscgym show $record
