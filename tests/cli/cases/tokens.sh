# Token ids as samples of a language model: cut from a text, or in lines; masks, positions and a past
# that follow from them; the loss and the metrics of tokens.
. "$(dirname "$0")/../lib.sh"
quantize() { mscgym quantize "$FILES/decoder.onnx" --effort fast -o small.onnx "$@" 2>said.txt; }
held_back() { jq -c ".plans[0].examined.validation | $1" report.json; }

echo "- a flat text; the float model's cross entropy is that of ONNX Runtime"
quantize --inputs "$FILES/decoder_ids.npy" --sequence 16 --labels next --json >report.json
held_back "[.float_cross_entropy - $(jq .cross_entropy "$FILES/decoder.json") | . > -1e-5 and . < 1e-5]"
held_back '[.top1_kept > 0.9, .top1_kept <= 1, .cross_entropy > 0, .distill_loss < 0.01]'
held_back '.distill_loss' >kl.txt
cat said.txt
quantize --inputs "$FILES/decoder_ids.npy" --sequence 16 --labels next |
    sed -n '/held_back/{s/   */  /g; s/[0-9.]*[0-9][-e0-9.]*/N/gp}'

echo "- the same in lines, which have the same loss"
lines=$FILES/decoder_ids.jsonl
jq -c '{input_ids: (.ids? // .)[:8 + input_line_number % 8]}' "$lines" >uneven.jsonl
quantize --inputs "$lines" --json >report.json && held_back '.distill_loss' | cmp - kl.txt && echo same
quantize --inputs uneven.jsonl --batch 1 --json >report.json && held_back '[.distill_loss < 0.01]'
quantize --inputs uneven.jsonl --sequence 16 --json >report.json && held_back '[.distill_loss < 0.01]'

echo "- the loss is the divergence of the scores, unless another is asked for"
quantize --inputs "$lines" --loss mse --json >report.json && held_back '.distill_loss' | cmp -s - kl.txt || echo other
quantize --inputs "$lines" --loss kl --loss-tensors logits --json >report.json &&
    held_back '.distill_loss' | cmp - kl.txt && echo same

echo "- in a search"
cat >search.json <<EOF
{"model": "$FILES/decoder.onnx", "workspace": "w",
 "dataset": {"inputs": "$FILES/decoder_ids.npy", "sequence": 16, "labels": "next", "validation": 0.2},
 "quantize": {"gym": [{"env": {"choices": [{"bits": 8}, {"bits": 4}], "loss": "kl", "loss_tensors": ["logits"],
     "bounds": {"cross_entropy": {"drop": 0.05}, "top1_kept": {"min": 0.5}}, "objectives": ["size_bytes"]},
     "budget": {"trials": 6}}]}}
EOF
mscgym search search.json --quiet --json 2>&1 | grep -v ^warning |
    jq -c '.[0].winner.examined.validation | [.cross_entropy > 0, .top1_kept > 0.5]'
mscgym resume w/*.jsonl --trials 2 --quiet --json 2>&1 | grep -v ^warning | jq -c '.[0] | has("winner")'

echo "- in groups, the scales of the table of ids have nearly the least squared error"
jq -c '.quantize.gym[0].env |= {choices: [{bits: 4, group_size: 32, rounding: "descent"}], activations: {float: true}} |
    .quantize.gym[0].budget.trials = 1 | .workspace = "g"' search.json >groups.json
mscgym search groups.json --quiet 2>>said.txt >out.txt
jq -c --slurpfile expected "$FILES/decoder.json" '[.edits[] | select(.site == "table") | .scales] | .[0] as $scales |
    $expected[0] | [range(4) as $i | $scales[$i] as $s |
        ([.table[$i][] | . - $s * ([[. / $s | round, -8] | max, 7] | min) | . * .] | add) < 1.02 * .least_errors[$i]]' \
    g/msc_quantize.json

echo "- errors"
fails() { quantize --inputs "$@" || sed "s|$FILES|FILES|g" said.txt; }
fails "$FILES/decoder_ids.npy"
fails "$FILES/decoder_ids.npy" --sequence 1000
echo '[1, 2, "x"]' >bad.jsonl && fails bad.jsonl
printf '[1, 2]\n{"text": "a"}\n' >bad.jsonl && fails bad.jsonl
printf '[1, 2]\n[1, 2\n' >bad.jsonl && fails bad.jsonl
: >bad.jsonl && fails bad.jsonl
mscgym quantize "$FILES/tiny.onnx" --inputs "$lines" -o s.onnx 2>&1 | sed "s|$FILES|FILES|g"
mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" --labels next -o s.onnx 2>&1 | sed "s|$FILES|FILES|g"
