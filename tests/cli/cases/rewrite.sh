# Rules replace patterns of joints; wrong rules are refused with the input that shows it.
. "$(dirname "$0")/../lib.sh"
cat >model.msc <<END
model <OUTPUTS: y>
ID x OUT: x<N,4|float32> OPTYPE: input
ID a IN: x OPTYPE: negative
ID b IN: a OPTYPE: negative
ID e IN: b OPTYPE: exp
ID y IN: e OPTYPE: log
END
cat >rules.msc <<END
# -(-x) is x.
rule negated_twice {
  match {
    ID a IN: x OPTYPE: negative
    ID y IN: a OPTYPE: negative
  }
  replace { y = x }
}
rule never { match { ID y IN: x OPTYPE: nn.relu } replace { ID y IN: x,0 OPTYPE: maximum } }
END
mscgym rewrite model.msc --rules rules.msc -o out.msc
cat out.msc
mscgym rewrite model.msc --rules rules.msc -o out.onnx --json
mscgym graph out.onnx | grep OPTYPE
echo "== a wrong rule"
cat >wrong.msc <<END
rule wrong { match { ID y IN: x OPTYPE: exp } replace { ID y IN: x OPTYPE: nn.softplus } }
END
try mscgym rewrite model.msc --rules rules.msc --rules wrong.msc -o new.msc --counterexample wrong.npz
ls new.msc wrong.npz 2>/dev/null
python3 - <<END
import zipfile
print(sorted(zipfile.ZipFile("wrong.npz").namelist()))
END
echo "== a limit"
cat >grows.msc <<END
rule grows {
  match { ID y IN: x OPTYPE: exp }
  replace { ID n IN: x OPTYPE: identity ID y IN: n OPTYPE: exp }
}
END
try mscgym rewrite model.msc --rules grows.msc --limit 5
echo "== usage"
try mscgym rewrite model.msc -o out.msc
try mscgym rewrite model.msc --rules rules.msc -o out.txt
try mscgym rewrite model.msc --rules rules.msc -o model.msc
try mscgym rewrite model.msc --rules rules.msc -o rules.msc
try mscgym rewrite model.msc --rules missing.msc
try mscgym rewrite model.msc --rules rules.msc --counterexample example.txt
echo "rule a { match { ID y IN: x OPTYPE: nn.rely } }" >bad.msc
try mscgym rewrite model.msc --rules bad.msc
# The program's passes run first, unless they are told not to.
cat >gelu.msc <<END
gelu <OUTPUTS: y>
ID x OUT: x<N,4|float32> OPTYPE: input
ID e IN: x OPTYPE: nn.gelu
ID y IN: e OPTYPE: nn.relu
END
mscgym rewrite gelu.msc --rules rules.msc -o gelu.onnx --quiet >log
cat >erf.msc <<END
rule erf { match { ID y IN: x OPTYPE: erf } replace { ID a IN: x OPTYPE: identity ID y IN: a OPTYPE: erf } }
END
try mscgym rewrite gelu.onnx --rules erf.msc --limit 1
try mscgym rewrite gelu.onnx --rules erf.msc --limit 1 --before-passes
echo "== passes of a configuration"
cat >tanh.msc <<END
rule no_tanh { match { ID y IN: x OPTYPE: nn.relu } replace { ID y IN: x,0 OPTYPE: maximum } }
END
cat >c.json <<END
{"verbose": "error", "model": "$FILES/tiny.onnx", "dataset": {"inputs": "$FILES/inputs.npz"},
 "passes": [{"rules": "tanh.msc"}],
 "quantize": {"target": "generic", "gym": [{"budget": {"trials": 2}}]}, "parse": {"graph": "g.msc"}}
END
mscgym search c.json --quiet >log && grep -h OPTYPE msc_workspace/g.msc
mscgym config c.json | grep -A4 '"passes"'
mscgym report msc_workspace/quantize_0.jsonl --json | jq -r '.. | .op? // empty' | sort -u
echo "rule bad { match { ID y IN: x OPTYPE: nn.relu } replace { ID y IN: x OPTYPE: tanh } }" >bad.msc
for passes in '"tanh.msc"' '[{}]' '[{"rule": "tanh.msc"}]' '[{"rules": "none.msc"}]' '[{"rules": "bad.msc"}]' ; do
    sed "s/\"verbose\"/\"workspace\": \"other\", \"verbose\"/; s/\[{\"rules\": \"tanh.msc\"}\]/$passes/" c.json >d.json
    try mscgym search d.json --quiet
done
echo "== a library's kernel"
cat >net.msc <<END
net <OUTPUTS: y>
ID x OUT: x<N,2|float32> OPTYPE: input
ID a IN: x,x OPTYPE: add
ID b IN: a OPTYPE: nn.relu
ID c IN: b,x OPTYPE: add
ID d IN: c OPTYPE: nn.relu
ID y IN: d OPTYPE: negative
END
cat >library.msc <<END
rule add_relu {
  match { ID s IN: p,q OPTYPE: add ID r IN: s OPTYPE: nn.relu }
  replace holding { ID r IN: p,q OPTYPE: msc.external ATTRS: domain=lib op=AddRelu attr_fast="int 1" }
}
END
python3 - <<END
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
head += " " * (-(len(head) + 11) % 64) + "\n"
data = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<4f", 1, -2, 0.5, 3)
open("x.npy", "wb").write(data)
END
mscgym rewrite net.msc --rules library.msc -o marked.msc
mscgym rewrite net.msc --rules library.msc -o marked.onnx --quiet
cat marked.msc
mscgym graph marked.msc -o again.msc && cmp marked.msc again.msc
mscgym graph marked.msc -o form.json && mscgym graph form.json -o back.msc && cmp marked.msc back.msc
for model in net.msc marked.msc form.json marked.onnx; do
    mscgym run $model --input x=x.npy --output "o_$model" --repeat 0 >log || cat log
    python3 -c "import sys, struct; print(struct.unpack('<4f', open(sys.argv[1], 'rb').read()[-16:]))" "o_$model/y.npy"
done
mkdir pieces && mscgym split marked.msc --by ops --op 'lib::*' -o pieces
echo "== weights without layouts"
cat >hand.msc <<END
hand <OUTPUTS: y>
ID x OUT: x<N,2|float32> OPTYPE: input
ID m IN: x WEIGHTS: weight: w<3,2|float32> OPTYPE: msc.linear
ID r IN: m OPTYPE: nn.relu
ID y IN: r OPTYPE: negative
END
cat >hand_rules.msc <<END
rule negative_relu {
  match { ID m IN: x,w OPTYPE: msc.linear ID r IN: m OPTYPE: nn.relu ID y IN: r OPTYPE: negative }
  replace { ID m IN: x,w OPTYPE: msc.linear ID n IN: m OPTYPE: negative ID y IN: n,0 OPTYPE: minimum }
}
END
python3 - <<END
import json, struct
head = json.dumps({"w": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}}).encode()
open("hand.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + struct.pack("<6f", 1, 2, 3, 4, 5, 6))
END
mscgym rewrite hand.msc --rules hand_rules.msc -o handed.msc
for model in hand.msc handed.msc; do
    mscgym run $model --input x=x.npy --output "o_$model" --repeat 0 >log || cat log
    python3 -c "import sys, struct; print(struct.unpack('<6f', open(sys.argv[1], 'rb').read()[-24:]))" "o_$model/y.npy"
done
echo "== misuse of msc.external"
match="match { ID s IN: p,q OPTYPE: add ID r IN: s OPTYPE: nn.relu }"
for replace in "replace holding { ID r IN: p,q OPTYPE: msc.external ATTRS: op=AddRelu }" \
    "replace { ID r IN: p,q OPTYPE: msc.external ATTRS: domain=lib op=AddRelu }" \
    "replace holding { ID r IN: p OPTYPE: msc.external ATTRS: domain=lib op=AddRelu }" \
    "replace holding { ID r IN: p,2 OPTYPE: msc.external ATTRS: domain=lib op=AddRelu }" \
    "replace holding { ID r IN: p,q OPTYPE: msc.external ATTRS: domain=lib op=AddRelu fast=1 }"; do
    echo "rule r { $match $replace }" >bad.msc
    try mscgym rewrite net.msc --rules bad.msc
done
