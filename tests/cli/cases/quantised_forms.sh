# A quantised model saved as JSON and as text computes the bits of the ONNX file: the weights file
# has the scales of the integers, so the kernels multiply integers in each form.
. "$(dirname "$0")/../lib.sh"
model="$EXAMPLES/../digits/digits.onnx"
inputs="$EXAMPLES/../digits/calibration.npz"
for target in onnxruntime generic; do
    mscgym quantize "$model" --inputs "$inputs" -o "$target.onnx" --target "$target" --effort fast --quiet >/dev/null
    mscgym graph "$target.onnx" -o "$target.msc" >/dev/null
    mkdir -p json
    mscgym graph "$target.onnx" -o "json/$target.json" >/dev/null
    mscgym graph "$target.msc" -o "again.msc" >/dev/null
    cmp "$target.msc" again.msc && cmp "$target.safetensors" again.safetensors
    for form in "$target.onnx" "$target.msc" "json/$target.json" again.msc; do
        mscgym run "$form" --inputs "$inputs" -o out.npz --quiet >/dev/null
        [ -f "$target.npz" ] || cp out.npz "$target.npz"
        cmp "$target.npz" out.npz && echo "$form: the bits of $target.onnx"
    done
done
