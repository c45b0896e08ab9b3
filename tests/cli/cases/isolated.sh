# In a plan of one choice, isolated_loss_sum is the plan's own loss, also if the choice corrects a bias.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
cat >a.json <<EOF
{"model": "$digits/digits.onnx", "dataset": {"inputs": "$digits/calibration.npz"}, "workspace": "a", "verbose": "error",
 "quantize": {"target": "generic", "runtime": false, "gym": [{
   "env": {"activations": {"float": true}, "exclude": ["0.weight", "2.weight", "10.weight"],
           "choices": [{"bits": 3, "rounding": "descent", "correct": "affine"}]},
   "agent": {"type": "random"}, "budget": {"trials": 2}}]}}
EOF
mscgym search a.json --json >a.out
jq -c '.. | objects | select(has("isolated_loss_sum")) | .isolated_loss_sum == .distill_loss' a.out
