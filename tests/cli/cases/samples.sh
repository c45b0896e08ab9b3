# Missing labels, too few samples, and the accuracy of the float model.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/tiny.onnx "$FILES"/inputs.npz "$FILES"/inputs_other.npz "$FILES"/labels.npy .
config() { # config DATASET ENV: further members of the dataset and the environment
    cat >c.json <<END
{"verbose": "warning", "model": "tiny.onnx", "dataset": {"inputs": "inputs.npz"$1},
 "quantize": {"gym": [{"env": {$2}, "budget": {"trials": 2}}]}}
END
}
labels=', "labels": "labels.npy"'
config '' '"objectives": ["accuracy"]'
try mscgym search c.json
config '' '"bounds": {"accuracy": {"min": 0.5}}'
try mscgym search c.json --dry-run
config '' '"objectives": ["acuracy"]'
try mscgym search c.json
config "$labels" '"objectives": ["accuracy"]'
mscgym search c.json | grep '^trials'

# Fewer samples than requested.
rm -r msc_workspace
config ', "samples": 20' ''
mscgym search c.json --dry-run 2>&1 | grep -v ^[cstrbm]
config ', "samples": 21' ''
mscgym search c.json --dry-run 2>&1 | grep -v ^[cstrbm]
config ', "samples": 18, "validation": 0.2' ''
mscgym search c.json --dry-run 2>&1 | grep -v ^[cstrbm]

# The dry run shows the float model's accuracy, so that wrong inputs are noticed. ONNX Runtime
# computed the expected accuracies.
config "$labels" ''
mscgym search c.json --dry-run | grep accuracy
sed 's/inputs.npz/inputs_other.npz/' c.json >other.json
mscgym search other.json --dry-run | grep accuracy

# Labels of classes that the network does not have.
python3 -c 'import sys; b = bytearray(sys.stdin.buffer.read()); b[-8] = 3; b[-16] = 255; sys.stdout.buffer.write(b)' \
    <labels.npy >odd.npy
config ', "labels": "odd.npy"' ''
mscgym search c.json --dry-run 2>&1 | grep 'labels'
ls
