# The stage `distill` improves the weights of the winner. Its result is kept next to the record,
# delivered, and the same in every run.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
model=$digits/digits.onnx

# digits NAME [STAGE [TARGET]]: 4-bit weights, with two choices for the activations.
digits() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "error", "model": "$model",
  "dataset": {"inputs": "$digits/calibration.npz", "samples": 200, "batch": 64,
              "validation": {"inputs": "$digits/validation.npz"}},
  "quantize": {"target": "${3:-generic}", "runtime": false, "gym": [{
    "record": "digits.jsonl",
    "env": {"choices": [{"bits": 8}, {"bits": 4, "rounding": "descent"}], "fix": {"*weight*": "4 descent"}},
    "agent": {"type": "random"}, "budget": {"trials": 4}, "parallel": 4${2:+, \"distill\": $2}
  }]}
}
END_OF_CONFIG
}

digits a true
mscgym search a.json >a.txt
grep -c '^distill: [1-4] of 4 weights improved, .* this plan is delivered' a.txt
jq '.loss_after < 0.7 * .loss_before, .held_back, .options, (.plan.edits | length)' a/digits.jsonl.distill.json
jq -c '[.weights[].site], (.improved == ([.weights[] | select(.ridge)] | length)),
    (.by | . == "outputs" or . == "loss")' a/digits.jsonl.distill.json
mscgym show a/digits.jsonl --json | jq '.winner, .distilled | [.metrics.distill_loss, .examined.validation.distill_loss]' |
    jq -s '[.[0], .[1]] | transpose | map(.[1] < 0.7 * .[0])' -c
diff <(mscgym show a/digits.jsonl | grep '^distill:\|_loss ') <(grep '^distill:\|_loss ' a.txt) && echo "shown again"

mscgym verify a/digits.jsonl
mscgym verify a/digits.jsonl --json | jq .distilled

echo "== all that is said first is of what is delivered"
# The loss of the delivered strategy according to `track`.
loss=$(mscgym track "$model" --strategy a/msc_quantize.json --inputs "$digits/validation.npz" --samples 0 --json 2>/dev/null |
    jq '.tensors[-1].snr_db | pow(10; -. / 10)')
mscgym report a/digits.jsonl --json | jq --argjson loss "$loss" '.records[0] |
    (.delivered.examined.validation.distill_loss / $loss - 1 | fabs < 1e-4),
    (.verdict.headline | sub("trial [0-9]+|uniform [0-9 a-z]+ with"; "N with")),
    .delivered.metrics.distill_loss == .numbers.distilled.metrics.distill_loss,
    .delivered.metrics.distill_loss < .numbers.winner.metrics.distill_loss'
mscgym show a/digits.jsonl | grep -o '^ *distilled: ' | tr -d ' '
mscgym show a/digits.jsonl --best | head -n 1 | sed 's/[0-9]\+/N/'
jq '.metrics.distill_loss' a/digits.jsonl.distill.json >delivered
mscgym show a/digits.jsonl --best | sed -n 's/^distill_loss: //p' | cmp - delivered && echo "its loss"
printf '#!/bin/sh\necho "$MSCGYM_LOSS" >told\n' >hook && chmod +x hook
mscgym search a.json --quiet --on-end ./hook >/dev/null
cmp told delivered && echo "and who is told of the end"
mscgym report a/digits.jsonl -o page.html
grep -c 'with better weights' page.html | sed 's/[1-9][0-9]*/on the page/'

echo "== the strategy and the model are of the improved plan"
jq -S '.plan.edits' a/digits.jsonl.distill.json >plan.json
jq -S '.edits' a/msc_quantize.json | cmp - plan.json && echo "the strategy"
mscgym export a/digits.jsonl -o record.onnx --save-strategy record.json
cmp record.json a/msc_quantize.json && cmp record.onnx a/digits.onnx && echo "exported again"
mscgym export a/digits.jsonl --trial "$(jq .winner.id a/digits.jsonl.distill.json)" -o trial.onnx --save-strategy trial.json
cmp -s trial.json a/msc_quantize.json || echo "the trial's own is another"

echo "== other threads"
digits b true
mscgym search b.json --threads 1 --quiet >/dev/null
mscgym search a.json --restart --threads 2 --quiet >/dev/null
cmp a/digits.jsonl.distill.json b/digits.jsonl.distill.json && cmp a/digits.onnx b/digits.onnx && echo equal
ls a | grep distill

echo "== killed on the way"
digits k true
{
for delay in 0.05 0.1 0.15 0.2 0.3 0.4 0.5; do
    timeout -s KILL $delay mscgym search k.json --quiet >/dev/null 2>&1
done
} 2>/dev/null # the shell's messages on the kills
mscgym search k.json --quiet >/dev/null
cmp k/digits.jsonl.distill.json b/digits.jsonl.distill.json && cmp k/digits.onnx b/digits.onnx &&
    cmp k/msc_quantize.json b/msc_quantize.json && echo equal

echo "== a record without the stage"
digits c
mscgym search c.json --quiet >/dev/null
grep -c '"distill":' c/digits.jsonl
digits c true
mscgym search c.json --quiet | grep -c '^distill: '
cmp c/msc_quantize.json b/msc_quantize.json && echo "added at its end"

echo "== a file that is damaged, and one of other options"
sed -i 's/"held_back": 25/"held_back": 26/' c/digits.jsonl.distill.json
mscgym show c/digits.jsonl 2>&1 | grep 'distill\.\|^distill:'
digits c '{"ridge": 2}'
mscgym search c.json --quiet | grep -c '^distill: '
jq -c .options c/digits.jsonl.distill.json

echo "== all sites of a target, and biases"
digits t true onnxruntime
mscgym search t.json --quiet | grep -c 'distill: .* this plan is delivered'

echo "== what is refused"
for distill in 5 '{"ridges": 1}' '{"ridge": []}' '{"ridge": -1}' '{"held_back": 1}'; do
    digits r "$distill"
    try mscgym search r.json
done
digits r '{"held_back": 0.9}'
mscgym config --show r.json | jq -c '.quantize.gym[0].distill'
