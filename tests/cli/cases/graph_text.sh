# A graph as text is a model: every command reads it, and printing it gives the file.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/*.npz .
for model in tiny branch ; do
    mscgym graph "$FILES/$model.onnx" -o saved.msc
    cmp <(mscgym graph "$FILES/$model.onnx") saved.msc && cmp <(mscgym graph saved.msc) saved.msc && echo "$model: the same"
    cmp <(mscgym graph "$FILES/$model.onnx" --json) <(mscgym graph saved.msc --json) && echo "$model as JSON: the same"
done
mscgym graph "$FILES/tiny.onnx" -o saved.msc
ls saved.*
cat saved.msc
mscgym run saved.msc --input x="$FILES/x.npy" --repeat 0 --output text
mscgym run "$FILES/tiny.onnx" --input x="$FILES/x.npy" --repeat 0 --output onnx
cmp onnx/y.npy text/y.npy && echo "the same outputs"
cat >c.json <<END
{"verbose": "error", "model": "saved.msc", "dataset": {"inputs": "inputs.npz"},
 "quantize": {"target": "generic", "gym": [{"budget": {"trials": 2}}]}, "parse": {"graph": "again.msc"}}
END
mscgym search c.json --quiet >log && cmp msc_workspace/again.msc saved.msc && echo "the same after parse"
# A text is replaced only by a text, and not while it is read.
try mscgym graph saved.msc -o saved.msc
echo "a note" >note.msc
try mscgym graph "$FILES/tiny.onnx" -o note.msc

echo "== by hand, without weights"
cat >small.msc <<END
# Doubles the input and keeps what is positive.
small <OUTPUTS: relu>
ID x    OUT: x<N,4|float32>  OPTYPE: input
ID twice IN: x,x  OPTYPE: add
ID relu IN: twice OPTYPE: nn.relu
END
mscgym graph small.msc
mscgym graph small.msc -o other.json && mscgym graph other.json -o again.msc
cmp <(mscgym graph small.msc) again.msc && echo "the same"
echo "== weights that are missing"
mscgym graph "$FILES/tiny.onnx" -o lost.msc && rm lost.safetensors
cmp <(mscgym graph lost.msc --quiet) lost.msc && echo "printed"
try mscgym graph lost.msc --sites
echo "== errors"
sed 's/OPTYPE: nn.relu/OPTYPE:/' small.msc >bad.msc
try mscgym graph bad.msc
sed 's/IN: twice/IN: twise/' small.msc >bad.msc
try mscgym graph bad.msc
