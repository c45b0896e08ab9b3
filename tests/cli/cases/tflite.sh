# Files for LiteRT: `export`, `quantize`, and searches with target tflite.
. "$(dirname "$0")/../lib.sh"
kind() { # the identifier of a file
    head -c 8 "$1" | tail -c 4
    echo " $1"
}
lite() { # NAME: a search with target tflite
    tiny "$1"
    sed -i 's/"generic"/"tflite"/; s/{"bits": 4}/{"float": true}/' "$1.json"
}

echo "- float models"
try mscgym export --model "$FILES/tiny.onnx" -o float.tflite
kind float.tflite
try mscgym export --model "$FILES/branch.onnx" -o branch.tflite
try mscgym export --model "$FILES/tiny.onnx" -o float.lite
ls

echo "- a file is replaced by a model only if it is one"
cp "$FILES/tiny.onnx" old.tflite
try mscgym export --model "$FILES/tiny.onnx" -o old.tflite
kind old.tflite
echo text >old.tflite
try mscgym export --model "$FILES/tiny.onnx" -o old.tflite
cat old.tflite
rm ./*

echo "- a search delivers a .tflite file, the same as export"
lite a
try mscgym search a.json --quiet | tail -1
(cd a && ls ./*.tflite ./*.onnx 2>/dev/null)
mscgym export a/tiny.jsonl -o again.tflite
cmp a/tiny.tflite again.tflite && echo same
mscgym export --model "$FILES/tiny.onnx" --strategy a/msc_quantize.json -o given.tflite
kind given.tflite

echo "- unless the configuration names a file"
lite b
sed -i 's/"quantize":/"compile": {"export": {"model": "named.onnx"}}, &/' b.json
try mscgym search b.json --quiet | tail -1
(cd b && ls ./*.tflite ./*.onnx 2>/dev/null)

echo "- other targets are refused before the search"
tiny c
sed -i 's/"quantize":/"compile": {"export": {"model": "named.tflite"}}, &/' c.json
try mscgym search c.json --quiet | tail -2
try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o q.tflite --target openvino
tiny d
mscgym search d.json --quiet >d.txt
try mscgym export d/tiny.jsonl -o d.tflite

echo "- quantize takes the target from the ending"
mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o q.tflite --effort fast --quiet --json |
    jq -r .target
kind q.tflite
