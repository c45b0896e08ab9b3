# `rules` restricts choices of tensors by kind, name, producer and consumer.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" "$FILES/inputs.npz" .

# config NAME RULES [MEMBERS]: a search over all plans of the tiny network.
config() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "error", "model": "tiny.onnx", "dataset": {"inputs": "inputs.npz"},
  "quantize": {"target": "generic", "gym": [{
    "record": "r.jsonl",
    "env": {"choices": [{"bits": 8}, {"bits": 6}, {"bits": 4}], "rules": $2${3:+, $3}},
    "agent": {"type": "grid_search", "mode": "full"}, "parallel": 8
  }]}
}
END_OF_CONFIG
}

config a '[{"kind": "weight", "op": "Conv", "choices": ["8"]},
           {"consumer": "*linear*", "kind": "weight", "choices": ["4", "6"]},
           {"producer": "flatten", "choices": ["4"]}]'
mscgym search a.json --quiet >/dev/null
mscgym show a/r.jsonl --json | jq -c '.counts | [.trials, .baselines, .repeats]'
# Lists the choices of each tensor over all trials: x is free, the others follow the rules.
for trial in $(seq 0 $(($(mscgym show a/r.jsonl --json | jq .counts.trials) - 1))); do
    mscgym export a/r.jsonl --trial $trial -o t.onnx --save-strategy t.json --quiet
    jq -r '.edits[] | "\(.site) \(.choice)"' t.json
done | sort -u
mscgym verify a/r.jsonl
# The first matching rule applies. Here a rule by name comes before a rule by kind.
config b '[{"name": "fc.weight", "choices": ["8", "4"]}, {"kind": "weight", "choices": ["4"]}]' '"fix": {"x*": "8"}'
mscgym search b.json --quiet >/dev/null
mscgym show b/r.jsonl --json | jq -c '.counts.trials'
mscgym config --show b.json | jq -c '.quantize.gym[0].env.rules'

echo "== what does not go"
refuse() {
    config c "$1" "$2"
    mscgym search c.json --quiet
    echo "exit $?"
}
refuse '{}' 2>&1
refuse '[{"choices": []}]' 2>&1
refuse '[{"choices": ["5"]}]' 2>&1
refuse '[]' '"fix": {"x*": "5"}' 2>&1
refuse '[]' '"fix": {"x*": 8}' 2>&1
refuse '[{"kind": "bias", "choices": ["8"]}]' 2>&1
refuse '[{"consumers": "fc", "choices": ["8"]}]' 2>&1
refuse '[{"name": "fd*", "choices": ["8"]}]' 2>&1
echo "- with the target of the search, if it decides which tensors are sites"
config d '[{"name": "fd*", "choices": ["8"]}]' && sed -i s/generic/onnxruntime/ d.json
mscgym search d.json --quiet 2>&1
config d '[]' '"exclude": ["fd*"]' && sed -i s/generic/onnxruntime/ d.json
mscgym search d.json --quiet 2>&1
refuse '[{"kind": "weight", "choices": ["8"]}, {"kind": "activation", "choices": ["4"]}]' '"group": "joint"' 2>&1
