# `outputs`: a search that ends before the network does. The network is a convolution c, its relu r,
# flatten f, and a linear layer y.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" "$FILES/inputs.npz" .

# config NAME TOP ENV: further top-level keys and members of the environment.
config() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "error", "model": "tiny.onnx", "dataset": {"inputs": "inputs.npz"}, $2
  "quantize": {"target": "generic", "gym": [{
    "record": "r.jsonl", "env": {"choices": [{"bits": 8}, {"bits": 4}]$3},
    "agent": {"type": "grid_search", "mode": "full"}, "parallel": 8
  }]}
}
END_OF_CONFIG
}

# look NAME: prints what is searched, its loss, and what the exported model computes.
look() {
    mscgym search $1.json --quiet >/dev/null
    mscgym show $1/r.jsonl --json | jq -c '[.counts.trials, .counts.repeats, (.winner.choices | keys)]'
    mscgym show $1/r.jsonl --json | jq -c '.winner.metrics.distill_loss' >$1.loss
    mscgym run $1/tiny.onnx --inputs inputs.npz -o $1.safetensors --quiet | sed 's/, .*//'
    mscgym verify $1/r.jsonl
}
config a '"outputs": ["r"],' ''
look a
config b '' ', "outputs": ["r"]'
look b
cmp <(jq -c .edits a/msc_quantize.json) <(jq -c .edits b/msc_quantize.json) && echo "the same plan"
# The same loss as a search of the whole network that compares r.
config c '' ', "loss_tensors": ["r"]'
look c
cmp a.loss c.loss && echo "the same loss"
config d '"outputs": ["c"],' ', "outputs": ["f", "c"], "loss_tensors": ["f"]'
look d
config e '' ''
sed -i 's/"quantize"/"outputs": ["r"], "prune"/; s/"choices": \[.*\]}/"choices": [{"density": 1}]}/; s/"target": "generic", //' e.json
mscgym config --show e.json | jq -c '.prune.gym[0].env.loss_tensors'

echo "== what does not go"
refuse() {
    config x '' ", \"outputs\": $1"
    mscgym search x.json --quiet
    echo "exit $?"
}
refuse '["z"]' 2>&1
refuse '["x"]' 2>&1
refuse '"r"' 2>&1
