# A saved graph is a model: reading it gives the same graph and weights.
. "$(dirname "$0")/../lib.sh"
same() {
    for form in --json --sites; do
        cmp <(mscgym graph "$@" "$form" --quiet) <(mscgym graph saved.json "$form" --quiet) && echo "$form: the same"
    done
}
mscgym graph "$FILES/tiny.onnx" -o saved.json
ls saved.*
same "$FILES/tiny.onnx"
mscgym run "$FILES/tiny.onnx" --input x="$FILES/x.npy" --repeat 0 --output onnx
mscgym run saved.json --input x="$FILES/x.npy" --repeat 0 --output json
cmp onnx/y.npy json/y.npy && echo "the same"
# With a bound batch; with the bodies of a branch.
mscgym graph "$FILES/tiny.onnx" --bind N=4 -o saved.json
same "$FILES/tiny.onnx" --bind N=4
mscgym graph "$FILES/branch.onnx" --output saved.json
same "$FILES/branch.onnx"
# A graph cannot be saved onto itself.
try mscgym graph saved.json -o saved.json
same "$FILES/branch.onnx"

try mscgym graph "$FILES/tiny.onnx" -o saved.onnx
try mscgym graph "$FILES/tiny.onnx" -o .json
try mscgym graph "$FILES/tiny.onnx" -o missing/saved.json
for form in --json --prototxt --placement --sites; do
    try mscgym graph "$FILES/tiny.onnx" -o other.json "$form"
done
ls
