# `quantize`: the best 8-bit model without a search.
. "$(dirname "$0")/../lib.sh"
export MSCGYM_RUNTIME=$FILES/fake_runtime.py
small() { # FAKE has latencies; with --float of the best plan, the plain plan and the float model
    FAKE='{"us": [30, 20, 10, 10, 10, 10, 10, 10, 10]}' try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o small.onnx "$@"
}
small --labels "$FILES/labels.npy" --float 0 >said.txt
sed -n 's/weights .*/WEIGHTS/p; /runtime\|^model\|exit/p' said.txt | sed 's/   */  /g' | default_target
ls
mscgym run small.onnx --input x="$FILES/x.npy" --output out --repeat 0 && ls out

echo "- the plan as a strategy file"
small --float 0 --save-strategy small.json >said.txt
mscgym export --model "$FILES/tiny.onnx" --strategy small.json -o again.onnx
cmp small.onnx again.onnx && echo "export writes the same model"
try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o s.onnx --save-strategy s.onnx 2>&1
rm small.json again.onnx

echo "- the best is what loses least on the samples held back, and what is written"
small --json --float 0 >report.json
jq -c '[.target, .samples, .held_back, .model, (.plans | length),
    (.plans | map([.weights, .activations]) | unique | length), ([.plans[] | select(.plain)] | length),
    ([.plans[].examined.validation.distill_loss] | . == sort), (.reference | keys)]' <(sed '$d' report.json) | default_target
# A search with the plain plan's choice for all tensors reports the same loss.
small --target generic --float 0 --json >report.json
jq -r '.plans[] | select(.plain) | .examined.validation.distill_loss' <(sed '$d' report.json) >here.txt
tiny a
sed -i 's/{"bits": 8}, {"bits": 4}/{"bits": 8, "observer": "minmax"}/' a.json
mscgym search a.json --quiet --json |
    jq -r '.[0].winner.examined.validation.distill_loss' >there.txt
# Losses are summed in other batches, so the last digits may differ.
cmp <(awk '{ printf "%.4g\n", $1 }' here.txt) <(awk '{ printf "%.4g\n", $1 }' there.txt) && echo "as in a search"

echo "- tensors left float where that pays, as many as they may be"
for n in 0 1 4; do
    small --json --float $n >report.json
    jq -c "[([.plans[].float] | max) <= $n, ([.plans[] | select(.float > 0 and .plain)] | length)]" <(sed '$d' report.json)
done

echo "- efforts"
loss() { # of the plan that a jq filter selects
    jq "[.plans[] | select($1)][0].examined.validation.distill_loss" <(sed '$d' report.json)
}
small --json --float 0 --target generic --effort best >report.json
plain=$(loss .plain)
best=$(loss true)
for effort in fast default best; do
    small --json --float 0 --target generic --effort $effort >report.json
    jq -n -c --arg effort $effort --argjson report "$(sed '$d' report.json)" --argjson loss "$(loss true)" \
        --argjson plain "$plain" --argjson best "$best" \
        '[$effort, $report.effort == $effort, ($report.plans | length) > 1, $loss <= 1.1 * $plain, $best <= 1.1 * $loss]'
done
small --labels "$FILES/labels.npy" --effort fast | sed -n 's/   */  /g; /held_back.accuracy/p'
for threads in 1 2; do
    small --threads $threads --effort default --json >report.json
    mv small.onnx $threads.onnx
done
cmp 1.onnx 2.onnx && rm 1.onnx 2.onnx

echo "- without its runtime"
MSCGYM_RUNTIME=no/runtime small --float 0 | grep 'runtime\|exit' | sed 's/: .*mscgym-runtime/: mscgym-runtime/' | default_target
small --target tensorrt | grep -c runtime

echo "- floats where integers would take more time, from weights of bytes"
MSCGYM_RUNTIME=no/runtime small --json >report.json
jq -c '[.plans[0].float > 0, .plans[0].predicted_ratio <= 1, .plans[0].metrics.size_bytes ==
    ([.plans[] | select(.plain)][0].metrics.size_bytes)]' <(sed '$d' report.json)

echo "- what is wrong is one line"
try mscgym quantize
try mscgym quantize "$FILES/tiny.onnx" -o b.onnx
try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz"
try mscgym quantize "$FILES/tiny.onnx" --inputs none.npz -o b.onnx
try mscgym quantize none.onnx --inputs "$FILES/inputs.npz" -o b.onnx
try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o b.onnx --target cuda
try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o b.onnx --sites some
try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o b.onnx --effort most
try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o b.onnx --float few
cp "$FILES/tiny.onnx" own.onnx
try mscgym quantize own.onnx --inputs "$FILES/inputs.npz" -o own.onnx
try mscgym quantize own.onnx --inputs "$FILES/inputs.npz" -o small
try mscgym quantize own.onnx --inputs "$FILES/inputs.npz" -o no/folder/b.onnx
ls
