# Labels that are missing, samples that are missing, and what the float model makes of them.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/tiny.onnx "$FILES"/inputs.npz "$FILES"/inputs_other.npz "$FILES"/labels.npy .
config() { # dataset, environment
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

# Fewer than asked for.
rm -r msc_workspace
config ', "samples": 20' ''
mscgym search c.json --dry-run 2>&1 | grep -v ^[strbm]
config ', "samples": 21' ''
mscgym search c.json --dry-run 2>&1 | grep -v ^[strbm]
config ', "samples": 18, "validation": 0.2' ''
mscgym search c.json --dry-run 2>&1 | grep -v ^[strbm]

# What is not as in training shows in a dry run. Accuracies are ONNX Runtime's.
config "$labels" ''
mscgym search c.json --dry-run | grep accuracy
sed 's/inputs.npz/inputs_other.npz/' c.json >other.json
mscgym search other.json --dry-run | grep accuracy

# Labels of other classes than the network has.
python3 -c 'import sys; b = bytearray(sys.stdin.buffer.read()); b[-8] = 3; b[-16] = 255; sys.stdout.buffer.write(b)' \
    <labels.npy >odd.npy
config ', "labels": "odd.npy"' ''
mscgym search c.json --dry-run 2>&1 | grep 'labels'
ls
