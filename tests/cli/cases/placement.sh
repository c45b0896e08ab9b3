# Where each joint runs, for people and as JSON. The first line names the machine.
. "$(dirname "$0")/../lib.sh"
mscgym graph "$FILES/tiny.onnx" --placement --device cpu | tail -n +2
mscgym graph "$FILES/tiny.onnx" --placement --device cpu --bind N=4 --json | jq -c 'del(.numerics)'
try mscgym graph "$FILES/tiny.onnx" --placement --device cpu:x
# What decides how the network is read is bound already.
mscgym graph "$FILES/branch.onnx" --placement --device cpu --bind mode=1 --bind N=2 | tail -n +2
cp "$FILES/branch.onnx" .
try mscgym graph branch.onnx --placement --device cpu --bind mode=1 --bind M=2
mscgym graph "$FILES/tiny.onnx" --bind N=4 --json | jq -c '.inputs'

# Where there is Vulkan, it runs all of this network but the renaming, and nothing is copied.
if placed=$(mscgym graph "$FILES/tiny.onnx" --placement --device vulkan --json 2>/dev/null); then
    jq -r '(.steps[] | select(.kind != "alias" and .device != "vulkan")),
           (select(.copies != 0 or .copied_bytes != 0) | "copies")' <<<"$placed"
fi
