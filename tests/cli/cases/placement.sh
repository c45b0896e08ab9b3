# `graph --placement`: the device of each joint, as text and JSON. The first line names the machine
# and is left out here.
. "$(dirname "$0")/../lib.sh"
mscgym graph "$FILES/tiny.onnx" --placement --device cpu | tail -n +2
mscgym graph "$FILES/tiny.onnx" --placement --device cpu --bind N=4 --json | jq -c 'del(.numerics)'
try mscgym graph "$FILES/tiny.onnx" --placement --device cpu:x
# An input that decides on branches must be bound.
mscgym graph "$FILES/branch.onnx" --placement --device cpu --bind mode=1 --bind N=2 | tail -n +2
cp "$FILES/branch.onnx" .
try mscgym graph branch.onnx --placement --device cpu --bind mode=1 --bind M=2
mscgym graph "$FILES/tiny.onnx" --bind N=4 --json | jq -c '.inputs'

# If Vulkan exists, it runs all of this network except renamings, without copies.
if placed=$(mscgym graph "$FILES/tiny.onnx" --placement --device vulkan --json 2>/dev/null); then
    jq -r '(.steps[] | select(.kind != "alias" and .device != "vulkan")),
           (select(.copies != 0 or .copied_bytes != 0) | "copies")' <<<"$placed"
fi
