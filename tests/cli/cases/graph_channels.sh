# What can be pruned: groups of channels that go together, with what they cost.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/tiny.onnx .
mscgym graph tiny.onnx --channels
mscgym graph tiny.onnx --channels --json
try mscgym graph tiny.onnx --channels --sites
try mscgym graph tiny.onnx --channels -o tiny.json
