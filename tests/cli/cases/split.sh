# Models cut into pieces, by target, operators and tensors, and run as a chain.
. "$(dirname "$0")/../lib.sh"
cp "$OPERATORS" ops.so
cp "$EXAMPLES/../operators/made_up.onnx" "$EXAMPLES/../operators/made_up.npz" .
mscgym run made_up.onnx --inputs made_up.npz -o whole.npz --operators ops.so --quiet
chain() {
    mscgym run "$1/manifest.json" --inputs made_up.npz -o "$1.npz" --operators ops.so --quiet
    cmp whole.npz "$1.npz" && echo "the same as the whole model"
}
echo "== by target"
mscgym split made_up.onnx -o target
jq -c 'del(.pieces[].hash)' target/manifest.json
try mscgym run target/manifest.json --inputs made_up.npz -o x.npz --operators ops.so --quiet
sed -i 's/"runtime": "onnxruntime"/"runtime": "mscgym"/' target/manifest.json
chain target
mscgym split "$FILES/tiny.onnx" --target tflite -o tiny | wc -l
mscgym split "$FILES/tiny.onnx" --target tflite --integers -o tiny_integers
mscgym split made_up.onnx --by ops -o ops --operators ops.so
chain ops
jq -c .plugins ops/manifest.json
try mscgym run ops/manifest.json --inputs made_up.npz -o x.npz --quiet
mscgym run ops/manifest.json --inputs made_up.npz -o x.npz --quiet --allow-plugins --keep kept
cmp whole.npz x.npz && ls kept
mscgym split made_up.onnx --by ops --op 'msc.conv*' --op Fold -o convs
mscgym run convs/manifest.json --inputs made_up.npz -o convs.npz --operators ops.so --quiet
echo "== by cut"
mscgym split made_up.onnx --by cut --at r1 --at f -o cut
chain cut

echo "== a piece is compressed"
mscgym quantize cut/piece0.onnx --inputs made_up.npz -o cut/small.onnx --quiet >/dev/null
sed -i 's/"piece0.onnx"/"small.onnx"/' cut/manifest.json
try mscgym run cut/manifest.json --inputs made_up.npz -o x.npz --operators ops.so --quiet
jq 'del(.pieces[0].hash)' cut/manifest.json >cut/small.json
mscgym run cut/small.json --inputs made_up.npz -o small.npz --operators ops.so --quiet && ls small.npz

echo "== errors"
try mscgym split made_up.onnx
try mscgym split made_up.onnx -o x --by cut
try mscgym split made_up.onnx -o x --by cut --at nothing
try mscgym split made_up.onnx -o x --by cut --at x
try mscgym split made_up.onnx -o x --by ops --op nothing
try mscgym split made_up.onnx -o x --op Fold
try mscgym split made_up.onnx -o x --target nothing
try mscgym split ops/piece0.onnx -o ops
try mscgym run cut/manifest.json --input x=made_up.npz
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --keep k
jq '.pieces |= reverse' cut/manifest.json >cut/reversed.json
try mscgym run cut/reversed.json --inputs made_up.npz -o x.npz
jq '.pieces[0].model = "../made_up.onnx"' cut/manifest.json >cut/outside.json
try mscgym run cut/outside.json --inputs made_up.npz -o x.npz
cp made_up.npz piece1.npz
try mscgym run cut/small.json --inputs piece1.npz -o piece1.npz --operators ops.so
try mscgym run cut/small.json --inputs piece1.npz -o x.npz --operators ops.so --keep .
cmp made_up.npz piece1.npz
mkdir kept/in
jq '.pieces[0].name = "../../escaped"' cut/small.json >cut/named.json
try mscgym run cut/named.json --inputs made_up.npz -o x.npz --operators ops.so --keep kept/in
ls escaped.npz 2>/dev/null
jq '.pieces[0].inputs[0].dims[0] = 1e300' cut/manifest.json >cut/long.json
try mscgym run cut/long.json --inputs made_up.npz -o x.npz
jq '.pieces[0].inputs[0].dims[1] = 3.5' cut/manifest.json >cut/part.json
try mscgym run cut/part.json --inputs made_up.npz -o x.npz
mkdir form
mscgym graph "$FILES/tiny.onnx" -o form/manifest.json
cp form/manifest.json form/before.json
try mscgym split form/manifest.json -o form
cmp form/before.json form/manifest.json
# Pieces get one sample after another, so the first axis of what passes between them counts samples.
cat >axes.msc <<'END'
axes <INPUTS: x:0| OUTPUTS: e:0>
ID x OUT: x:0<N,4,5|float32> OPTYPE: input
ID a IN: x:0 OPTYPE: nn.relu
ID b IN: a:0 OPTYPE: permute_dims ATTRS: axes=1,0,2
ID c IN: b:0 OPTYPE: tanh
ID d IN: c:0 OPTYPE: reshape ATTRS: shape=-1,5
ID e IN: d:0 OPTYPE: sigmoid
END
try mscgym split axes.msc --by cut --at b:0 -o axes
try mscgym split axes.msc --by cut --at d:0 -o axes
try mscgym split axes.msc --by ops --op tanh -o axes
mscgym split axes.msc --by cut --at a:0 -o axes | wc -l
ls axes
# Aliases may be equal, but two values of one name cannot pass between pieces.
cat >twice.msc <<'END'
twice <INPUTS: x:0| OUTPUTS: c:0>
ID x OUT: x:0<N,4|float32> OPTYPE: input
ID a IN: x:0 OUT: a:0(z) OPTYPE: nn.relu
ID b IN: x:0 OUT: b:0(z) OPTYPE: tanh
ID c IN: a:0,b:0 OPTYPE: subtract
END
try mscgym split twice.msc --by ops --op subtract -o twice
