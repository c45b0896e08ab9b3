# Pruning recurrent layers and attention, as torch's exporters write them: the groups, and a pruned
# model whose outputs equal those of the strategy.
. "$(dirname "$0")/../lib.sh"

for name in torch_lstm torch_gru torch_attention; do
    echo "== $name"
    model=$FILES/$name.onnx
    mscgym graph "$model" --channels
    cat >$name.json <<END_OF_CONFIG
{
  "workspace": "$name", "verbose": "error", "model": "$model",
  "dataset": {"inputs": "$FILES/$name.npz", "batch": 4},
  "prune": {"gym": [{
    "record": "r.jsonl",
    "env": {"choices": [{"density": 1}, {"density": 0.75}, {"density": 0.5}], "round_to": 1,
            "bounds": {"macs_ratio": {"max": 0.6}}},
    "agent": {"type": "evolutionary", "population": 4}, "budget": {"trials": 12}
  }]}
}
END_OF_CONFIG
    mscgym search $name.json >/dev/null
    mscgym show $name/r.jsonl --json | jq -c '.winner | .state, .metrics.macs_ratio <= 0.6'
    python3 -m zipfile -e "$FILES/$name.npz" .
    mscgym run "$model" --strategy $name/msc_prune.json --input x=x.npy --output one --repeat 0 >/dev/null
    mscgym run $name/$name.onnx --input x=x.npy --output other --repeat 0 >/dev/null
    close one/y.npy other/y.npy && echo "the same outputs"
done
