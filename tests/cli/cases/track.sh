# `track` compares two models. The numbers are checked by tests/model/test_track.c and
# check_track.py.
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

echo "== records, trials, strategies and stages"
# table WORD...: a checksum of the numbers, to compare different names of the same models.
table() {
    mscgym track "$@" --quiet | sha256sum | cut -c 1-8
}
mscgym track tiny.onnx --strategy a/msc_quantize.json $inputs | sha256sum | cut -c 1-8 >numbers
best=$(mscgym show a/tiny.jsonl --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["winner"]["id"])')
for words in "tiny.onnx a/msc_quantize.json --inputs inputs.npz" "a/tiny.jsonl" "a/tiny.jsonl:$best" "a.json" \
    "tiny.onnx a/tiny.jsonl" "a.json:baseline a.json:quantize[0]" "a.json:baseline a.json:export"; do
    table $words >>numbers
done
uniq -c numbers | sed 's/ [^ ]*$//'
mscgym track a/tiny.jsonl:0 a/tiny.jsonl:1 $inputs | tail -n 1 | sed 's/, to .*//'
mscgym run a.json:quantize $inputs --tensor '*' -o compressed.npz
mscgym run tiny.onnx --strategy a/msc_quantize.json $inputs --tensor '*' -o same.npz >/dev/null
cmp compressed.npz same.npz && echo "the same tensors"
try mscgym track a.json:nothing $inputs
try mscgym track a/tiny.jsonl:99 $inputs
try mscgym track a/tiny.jsonl:x $inputs
try mscgym track a/msc_quantize.json a/tiny.jsonl $inputs
try mscgym track a/tiny.jsonl --from a/msc_quantize.json $inputs

echo "== tensors that only depend on the length of the samples have no row"
try mscgym track "$FILES/positions.onnx" "$FILES/positions.onnx" --inputs "$FILES/positions.npz" --quiet

echo "== tensors without elements have no row"
cat >empty.msc <<END
g <INPUTS: x:0| OUTPUTS: whole:0,none:0>
P_0 n <PARENTS: | CHILDERN: >
  OPTYPE: shape
  ATTRS: dim=0 out_idx=0 producer=x

ID_0 x <PARENTS: | CHILDERN: whole>
  OUT: x:0<n,1,4,4|float32>
  OPTYPE: input

ID_1 whole <PARENTS: x| CHILDERN: none>
  IN: x:0<n,1,4,4|float32>
  OUT: whole:0<n,1,4,4|float32>
  OPTYPE: nn.relu

ID_2 none <PARENTS: whole| CHILDERN: >
  IN: whole:0<n,1,4,4|float32>
  OUT: none:0<n,0,4,4|float32>
  OPTYPE: strided_slice
  ATTRS: axes=1, begin=1, end=9, strides=
END
try mscgym track empty.msc empty.msc $inputs

echo "== what does not go"
try mscgym track tiny.onnx tiny.onnx
try mscgym track tiny.onnx $inputs
try mscgym track tiny.onnx absent.onnx $inputs
try mscgym track tiny.onnx --strategy tiny.onnx $inputs
try mscgym track tiny.onnx jump.onnx $inputs
