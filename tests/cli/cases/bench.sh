# `bench`: latency of models in a runtime, which a script replaces here, and on mscgym's own kernels.
. "$(dirname "$0")/../lib.sh"
unset MSCGYM_RUNTIME
cp "$FILES/tiny.onnx" a.onnx
cp "$FILES/tiny_4.onnx" b.onnx

# runtime ANSWER: writes a program that runs ANSWER after the first request.
runtime() {
    cat >runtime <<END
#!/bin/sh
read -r hello
echo '{"protocol":1,"processor":"A chip","features":["avx2"],"threads":2,"runtimes":[
    {"name":"onnxruntime","version":"1.2.3"},{"name":"openvino","missing":"pip install openvino"}]}' |
    tr -d '\n'
echo
read -r request
echo "\$request" >request.txt
$1
END
    chmod +x runtime
}
measured='echo "{\"note\":\"running\"}"
echo "{\"models\":[{\"runs\":7,\"us\":[10,30,20,40]},{\"runs\":2,\"us\":[20,15,30,2000]}]}"
read -r done'
export MSCGYM_RUNTIME=./runtime

runtime "$measured"
try mscgym bench a.onnx b.onnx --rounds 4 --threads 1
cat request.txt
try mscgym bench a.onnx b.onnx --rounds 4 --threads 2 --input x.npz --batch 8 --bind N=4 --json
cat request.txt
try mscgym bench a.onnx b.onnx --rounds 4 --threads 1 --bind N=4 --bind M=2 >/dev/null
cat request.txt
echo "- samples that are no .npz are written as one"
cp "$FILES/../../../examples/digits/digits.onnx" .
python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract("image.npy")' \
    "$FILES/../../../examples/digits/calibration.npz"
runtime 'cp "$(echo "$request" | jq -r .inputs)" given.npz
echo "{\"models\":[{\"runs\":7,\"us\":[10,30,20,40]}]}"
read -r done'
try mscgym bench digits.onnx --rounds 4 --threads 1 --batch 3 --input image.npy >/dev/null
mscgym run digits.onnx --inputs given.npz -o given_out.npz --quiet
mscgym run digits.onnx --inputs image.npy --samples 3 -o own_out.npz --quiet
cmp given_out.npz own_out.npz && echo "the same samples"
try mscgym bench digits.onnx --input absent.npy 2>&1 | grep -v "^cp:"
runtime "$measured"
echo "- what cannot be measured"
try mscgym bench a.onnx b.onnx --runtime openvino
try mscgym bench a.onnx b.onnx --runtime abacus
try mscgym bench a.onnx absent.onnx
try mscgym bench a.onnx --rounds 0
try mscgym bench a.onnx --batch 0
try mscgym bench a.onnx --threads 0
try mscgym bench a.onnx --bind N
try mscgym bench
echo "- what programs do wrong"
runtime 'echo "{\"error\":\"b.onnx: it is too new\"}"; read -r done'
try mscgym bench a.onnx b.onnx
runtime 'echo "{\"note\":\"loading b.onnx\"}"; exit 5'
try mscgym bench a.onnx b.onnx
runtime 'echo "Segmentation fault"; read -r done'
try mscgym bench a.onnx b.onnx
runtime "$measured"
try mscgym bench a.onnx b.onnx --rounds 5
chmod -x runtime
try mscgym bench a.onnx
MSCGYM_RUNTIME=no/such/program try mscgym bench a.onnx
MSCGYM_RUNTIME="sh runtime" try mscgym bench a.onnx b.onnx --rounds 4 --quiet | tail -n 1
echo "- the program beside mscgym"
unset MSCGYM_RUNTIME
mkdir modules
echo 'raise ModuleNotFoundError("no module", name="onnxruntime")' >modules/onnxruntime.py
echo 'raise ImportError("libtbb.so.12: cannot open shared object file")' >modules/openvino.py
export PYTHONPATH=$PWD/modules
for runtime in onnxruntime openvino; do
    try mscgym bench a.onnx --runtime $runtime | sed "s|for [^ ]*:|for PYTHON:|; s|[^ ]* -m pip|PYTHON -m pip|"
done
echo 'import os; os.kill(os.getpid(), 9)' >modules/openvino.py
try mscgym bench a.onnx | sed 's|/[^ ]*/||'
echo 'raise ModuleNotFoundError("no module", name="openvino")' >modules/openvino.py
helper=$(dirname "$(realpath "$(command -v mscgym)")")/mscgym-runtime
"$helper" >requests.txt <<'END'
nonsense
[]
{"method":"measure"}
{"method":"latency"}
{"method":"latency","runtime":"abacus"}
{"method":"latency","runtime":5}
{"method":"done"}
{"method":"hello"}
END
echo "exit $?"
cat requests.txt
"$helper" --help 2>&1 | head -n 1
echo "- the kernels of mscgym"
cp "$FILES/inputs_name.npz" names.npz
cp "$FILES/unknown_op.onnx" unknown.onnx
try mscgym bench a.onnx b.onnx --runtime cpu --rounds 3 --threads 1 |
    sed 's/mscgym, .*, 1/mscgym, NUMERICS, 1/; s/^\([ab].onnx\) .* \([0-9]*\)$/\1 ... \2/; s/  */ /g'
mscgym bench a.onnx b.onnx --runtime cpu --rounds 3 --threads 1 --input "$FILES/inputs.npz" \
    --batch 4 --json >cpu.json
python3 - <<'END'
import json
found = json.load(open("cpu.json"))
print(sorted(found), found["runtime"])
for model in found["models"]:
    us, rounds = model["us"], model["us_by_round"]
    print(model["model"], model["file_bytes"], sorted(model), len(rounds), min(rounds) > 0,
          us["lower"] <= us["median"] <= us["upper"], us["median"] == sorted(rounds)[1],
          1 <= model["runs"] <= 1000)
END
try mscgym bench a.onnx --runtime cpu --input names.npz
try mscgym bench a.onnx unknown.onnx --runtime cpu
