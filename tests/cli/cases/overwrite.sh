# Outputs never overwrite inputs, or files that are not outputs of the same kind.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" "$FILES/inputs.npz" "$FILES/labels.npy" "$FILES/x.npy" .
tiny a
sed -i "s|$FILES/||g" a.json
mscgym search a.json >/dev/null || exit 1
ln -s ../tiny.onnx a/soft.onnx
ln tiny.onnx a/hard.onnx
cp a.json b.json
cp a.json search.json
printf '"2","x"\n' >table.csv
echo "2026-11-22 notes" >notes.txt
mscgym search a.json 2>&1 | grep model:
find . -type f | sort | xargs sha256sum >../before

echo "== export"
for target in a/tiny.jsonl ./a/../a/tiny.jsonl a/tiny.jsonl.params tiny.onnx a/soft.onnx \
    a/hard.onnx inputs.npz labels.npy search.json notes.txt table.csv; do
    try mscgym export a/tiny.jsonl -o $target
done
for target in a/tiny.jsonl tiny.onnx new.onnx search.json; do
    try mscgym export a/tiny.jsonl -o new.onnx --save-strategy $target
done
for target in tiny.onnx a/msc_quantize.json x.npy a/tiny.jsonl; do
    try mscgym export --model tiny.onnx --strategy a/msc_quantize.json -o $target
done

echo "== run"
cp x.npy y.npy
for target in inputs.npz tiny.npz .; do
    try mscgym run tiny.onnx --input x=y.npy --repeat 0 --output $target
done
rm y.npy
mscgym run tiny.onnx --input x=x.npy --repeat 0 --output out.npz
try mscgym run tiny.onnx --input x=x.npy --repeat 0 --output out.npz
rm -f tiny.npz out.npz

echo "== graph"
mscgym graph tiny.onnx -o saved.json
try mscgym graph tiny.onnx -o saved.json
try mscgym graph saved.json -o saved.json
try mscgym graph tiny.onnx -o search.json
mv saved.safetensors weights.safetensors
try mscgym graph tiny.onnx -o weights.json
rm saved.json weights.safetensors

# Weights in an external file.
cp "$FILES/../../graph/files/external.onnx" "$FILES/../../graph/files/external.bin" .
try mscgym export --model external.onnx -o external.bin
rm external.*

echo "== report"
for target in a/tiny.jsonl ./a/../a/tiny.jsonl a/tiny.jsonl.params tiny.onnx notes.txt; do
    try mscgym report a/tiny.jsonl -o $target
done
cp notes.txt a/tiny.html
try mscgym report a/tiny.jsonl
rm a/tiny.html
mscgym report a/tiny.jsonl
try mscgym report a/tiny.jsonl # replaces the earlier page
rm a/tiny.html

echo "== search"
mv a aside
with() { # with KEYS KEYS: further top-level keys, and keys of `quantize`
    cp b.json a.json
    sed -i "s|\"workspace\"|$1\"workspace\"|; s|\"quantize\": {|&$2|" a.json
    for how in "" --dry-run; do
        try mscgym search a.json $how
    done
}
for target in tiny.onnx a.json inputs.npz labels.npy; do
    with "" "\"strategy_file\": \"../$target\", "
    with "\"log_file\": \"../$target\", " ""
done
with "" "\"strategy_file\": \"MSC_LOG\", "
with "" "\"strategy_file\": \"tiny.jsonl.params\", "
with "" "\"strategy_file\": \"../search.json\", "
with "\"log_file\": \"../search.json\", " ""
: >agent.py
cp b.json a.json
sed -i 's|"type": "random"|"type": "process", "command": ["python3", "agent.py"]|
    s|"quantize": {|&"strategy_file": "../agent.py", |' a.json
try mscgym search a.json
rm agent.py
cp b.json a.json
try mscgym search a.json --record tiny.onnx
try mscgym search a.json --record tiny.onnx --restart
rmdir a 2>/dev/null
mv aside a
sha256sum --check --quiet ../before && echo "nothing was changed"
