# `config --show` prints every default; its output is a configuration with the same output.
. "$(dirname "$0")/../lib.sh"
mkdir -p in
cat >in/c.json <<'END'
{
  "model": "m.onnx",
  "dataset": {"inputs": "x.npz"},
  "quantize": {"gym": [{"agent": {"type": "evolutionary"}, "budget": {"time": "1h30m"}},
                       {"record": "other.jsonl", "env": {"choices": [{"bits": 4}]}}]},
  "gym": [{"env": {"type": "toy"}}]
}
END
# The default target depends on the processor.
mscgym config --show in/c.json | sed 's/onnxruntime_avx2/onnxruntime/'
mscgym config --show in/c.json >in/d.json
mscgym config --show in/d.json | cmp - in/d.json && echo "the same again"
# Some defaults of an environment depend on its other keys.
cat >in/e.json <<'END'
{
  "model": "m.onnx",
  "dataset": {"inputs": "x.npz"},
  "quantize": {"target": "tensorrt",
               "gym": [{"env": {"exclude": ["a"]}},
                       {"record": "other.jsonl",
                        "env": {"target": "onnx", "weights": {"per_channel": false},
                                "bounds": {"size_ratio": {"max": 0.3}},
                                "objectives": ["size_bytes"]}}]}
}
END
mscgym config --show in/e.json >in/f.json
jq -c '.quantize.gym[].env' in/f.json
mscgym config --show in/f.json | cmp - in/f.json && echo "the same again"
mscgym config | head -n 3
mscgym config | grep -A 3 "race:\|rerank.command"
mscgym config --json | jq -c ".[] | select(.section | test(\"race|command\")) | [.keys[].name]"
mscgym agents library | head -n 1
mscgym agents random
mscgym agents --json | grep -c '"version"'
mscgym envs toy | head -n 2
mscgym devices | sed -n 's/^\(cpu\): cpu.*/\1/p'
