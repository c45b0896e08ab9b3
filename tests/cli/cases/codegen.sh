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
# The arrays are too large here; the second run finds no leftovers.
cat >large.msc <<'END'
large <INPUTS: x:0| OUTPUTS: y:0>
ID x OUT: x:0<1,40000|float32> OPTYPE: input
ID y IN: x:0 OPTYPE: nn.relu
END
(
    ulimit -f 32
    try mscgym codegen large.msc --to onnxruntime -o large | sed 's/: [^:]*$/: CAUSE/'
)
find large
mscgym codegen large.msc --to onnxruntime -o large && find large -type f | sort
