# `graph --sites` fits into 100 columns however long names are. A shortened name is a pattern that
# matches the full one; JSON has full names.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/*.onnx "$FILES"/*.npz .
mscgym graph tiny.onnx --sites

long=network/stage_with_a_long_name/block_with_a_long_name/branch_with_a_long_name
mscgym graph tiny.onnx --json |
    sed -E -e "s,\"(relu|flatten|fc)([:\"]),\"$long/\1\2," -e "s,(\"optype\": \")$long/,\1," \
        -e '2s,tiny,wide,' >wide.json
header='{"conv.weight":{"dtype":"F32","shape":[2,1,3,3],"data_offsets":[0,72]},'
header+='"conv.bias":{"dtype":"F32","shape":[2],"data_offsets":[72,80]},'
header+='"fc.weight":{"dtype":"F32","shape":[3,32],"data_offsets":[80,464]},'
header+='"fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[464,476]}}'
{
    printf "\\x$(printf %x $((${#header} % 256)))\\x$(printf %x $((${#header} / 256)))\0\0\0\0\0\0"
    printf %s "$header"
    head -c 476 /dev/zero
} >wide.safetensors
mscgym graph wide.json --sites
mscgym graph wide.json --sites --json | jq -r .[2].name

# Uses the shortened name as a pattern.
short=$(mscgym graph wide.json --sites | awk '/flatten/ { print $3 }')
cat >c.json <<END
{"verbose": "error", "model": "wide.json", "dataset": {"inputs": "inputs.npz"},
 "quantize": {"target": "generic", "gym": [{"env": {"include": ["$short"]}, "budget": {"trials": 2}}]}}
END
mscgym search c.json >/dev/null
head -n 1 msc_workspace/quantize_0.jsonl | jq -r '.space.tasks[].name'

# The sites that a target requantises.
mscgym graph tiny.onnx --sites --target onnxruntime
mscgym graph tiny.onnx --sites --target tflite --json | jq -c '.[] | [.name, .joints]'
try mscgym graph tiny.onnx --sites --target tensorfl
try mscgym graph tiny.onnx --target onnxruntime
