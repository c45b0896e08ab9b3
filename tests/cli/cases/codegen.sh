# The files of a program, and what is refused. tests/codegen builds programs.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" "$FILES/labels.npy" .
try mscgym codegen tiny.onnx -o program
ls -A program
grep -c begin_joint program/network.c
try mscgym codegen tiny.onnx --to onnxruntime -o ort
ls -A ort ort/inputs ort/outputs

echo "== files that may have been changed are not replaced"
try mscgym codegen tiny.onnx -o program

echo "== nothing is left of a program that cannot be written"
try mscgym codegen absent.onnx -o none
try mscgym codegen tiny.onnx --inputs labels.npy -o none
try mscgym codegen tiny.onnx -o none --bind M=2
try mscgym codegen tiny.onnx
try mscgym codegen tiny.onnx -o none --batch 0
try mscgym codegen tiny.onnx -o none --to java
try ls none
# Files may grow to 32 KB only, as on a full disk.
for kind in c onnxruntime; do
    (
        ulimit -f 32
        try mscgym codegen "$EXAMPLES/../digits/digits.onnx" --to $kind -o full_$kind | sed 's/: [^:]*$/: CAUSE/'
    )
    find full_$kind -type f
done
