# Each error in a configuration is one line that names the file, the place and the fix.
. "$(dirname "$0")/../lib.sh"
config() {
    printf '%s' "$1" >c.json
    try mscgym search c.json
}
gym='"gym":[{"env":{"type":"toy"}'
try mscgym search missing.json
config ''
config '{'
config '[]'
config '{}'
config '{"gym": [}'
config '{"gym": [{"env": {"type": "toy"}}], "gym": []}'
config '{"worskpace": "x"}'
config '{"verbose": "loud", '"$gym"'}]}'
config '{"workspace": "", '"$gym"'}]}'
config '{"workspace": 3, '"$gym"'}]}'
config '{"bind": {"N": 0.5}, '"$gym"'}]}'
config '{"baseline": {"check_config": {"atol": -1}}, '"$gym"'}]}'
config '{"baseline": {"check": {}}, '"$gym"'}]}'
config '{"profile": {"repeat": 0}, '"$gym"'}]}'
config '{"gym": {}}'
config '{"gym": [{}]}'
config '{"gym": [{"env": {"type": "toys"}}]}'
config '{"gym": [{"env": {"type": "./no.so"}}]}'
config '{"gym": [{"env": {"type": "toy", "task": 3}}]}'
config '{"gym": [{"env": {"type": "toy", "tasks": 0}}]}'
config '{'"$gym"', "agent": {"type": "randon"}}]}'
config '{'"$gym"', "agent": {"type": "q"}}]}'
config '{'"$gym"', "agent": {"type": "./own.so"}}]}'
config '{'"$gym"', "agent": {"populaton": 3, "type": "evolutionary"}}]}'
config '{'"$gym"', "agent": "random"}]}'
config '{'"$gym"', "agent": {"type": 3}}]}'
config '{'"$gym"', "agent": {"type": "process"}}]}'
config '{'"$gym"', "agent": {"type": "process", "command": ["python3", 3]}}]}'
config '{'"$gym"', "agent": {"type": "library"}}]}'
config '{'"$gym"', "agent": {"type": "library", "path": 3}}]}'
config '{'"$gym"', "budget": {"trails": 3}}]}'
config '{'"$gym"', "budget": {"time": "soon"}}]}'
config '{'"$gym"', "parallel": -1}]}'
config '{'"$gym"', "baseline": "best"}]}'
config '{'"$gym"', "record": "a"}, {"env":{"type":"toy"}, "record": "a"}]}'
config '{"prune": {}, '"$gym"'}]}'
config '{"quantize": {"gym": [{}]}}'
config '{"model": "m.onnx", "quantize": {"gym": [{}]}}'
config '{"model": "m.onnx", "dataset": {}, "quantize": {"gym": [{}]}}'
config '{"model": "m.onnx", "dataset": {"inputs": "x.npz", "validation": 2}, "quantize": {}}'
config '{"model": "m.onnx", "dataset": {"inputs": "x.npz", "validation": {}}, "quantize": {}}'
config '{"model": "m.onnx", "dataset": {"inputs": "x.npz", "image": {"mean": [1]}}, "quantize": {}}'
config '{"model": "m.onnx", "dataset": {"inputs": "x.npz"}, "quantize": {"targt": "onnx"}}'
config '{"model": "m.onnx", "dataset": {"inputs": "x.npz"}, "quantize": {"target": "trt"}}'
config '{"model": "m.onnx", "dataset": {"inputs": "x.npz"}, "quantize": {}}'
config '{"model": "m.txt", "dataset": {"inputs": "x.npz"}, "quantize": {}}'
printf '{"gym": [{"env": {"type": "toy"}}, {"env": {"type": "toy"}}]}' >c.json
try mscgym search c.json --trials 5
try mscgym search c.json --entry gym[2]
ls
