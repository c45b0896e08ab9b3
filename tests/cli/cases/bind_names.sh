# A --bind of a name that the model does not have: the message lists the names that it has.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/*.onnx "$FILES"/*.npy "$FILES"/*.npz .
try mscgym graph tiny.onnx --bind H=4
try mscgym graph tiny.onnx --bind n=4 --placement
try mscgym graph fixed.onnx --bind H=4
try mscgym graph branch.onnx --bind moed=1
try mscgym graph branch.onnx --bind q=1
try mscgym run branch.onnx --input x=detect_x0.npy --bind q=1 --output o
try mscgym export --model tiny.onnx --bind H=4 -o o.onnx
try mscgym export --model branch.onnx --bind mdoe=4 -o o.onnx
try mscgym graph branch.onnx --bind mode=0 --bind M=2
ls o o.onnx 2>/dev/null

# Tensors within a branch can be compressed once a binding decides that the branch is taken.
try mscgym graph branch.onnx --sites
try mscgym graph branch.onnx --sites --bind mode=0
