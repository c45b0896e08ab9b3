# Groups of channels that can only be pruned together, with their costs.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/tiny.onnx .
mscgym graph tiny.onnx --channels
mscgym graph tiny.onnx --channels --json
try mscgym graph tiny.onnx --channels --sites
try mscgym graph tiny.onnx --channels -o tiny.json
echo "== the weight graph"
mscgym graph "$FILES/tiny.onnx" --weights
mscgym graph "$FILES/tiny.onnx" --weights --prototxt
mscgym graph "$FILES/tiny.onnx" --weights --json | jq -c '.name, (.nodes[] | [.index, .name, .attrs.weight_strategy, .parents])'
