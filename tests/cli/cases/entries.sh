# Several searches in one configuration: each starts from the results of those before it.
. "$(dirname "$0")/../lib.sh"
cat >c.json <<END
{
  "workspace": "w", "verbose": "error", "model": "$FILES/tiny.onnx",
  "dataset": {"inputs": "$FILES/inputs.npz", "batch": 4},
  "quantize": {"target": "generic", "gym": [
    {"env": {"choices": [{"bits": 8}, {"bits": 4}], "include": ["*weight"],
             "bounds": {"size_bytes": {"max": 300}}},
     "agent": {"type": "random"}, "budget": {"trials": 2}, "parallel": 2},
    {"env": {"choices": [{"bits": 8}, {"bits": 4}], "exclude": ["*weight"]},
     "agent": {"type": "random"}, "budget": {"trials": 2}, "parallel": 2}
  ]}
}
END
try mscgym search c.json --entry quantize[1]
mscgym search c.json | sed -n 's/^\(search .*\)/\1/p; s/^\(strategy: .*\)/\1/p'
ls w
grep -c '"site"' w/msc_quantize.json
sed 's/.*"base":"\([^"]*\)".*/base \1/;q' w/quantize_1.jsonl
cp w/msc_quantize.json both.json
mscgym search c.json --dry-run | grep -c '^space: '
# Running only the first search does not undo the second.
mscgym search c.json --entry quantize[0] >/dev/null
cmp both.json w/msc_quantize.json && echo "the strategy file is still that of both"
mscgym resume w/quantize_1.jsonl >/dev/null && echo "resumed alone"
# Another winner of the first search makes the second one's record unusable.
sed -i 's/{"size_bytes": {"max": 300}}/{"size_bytes": {"max": 110}}/' c.json
try mscgym search c.json 2>&1 | tail -n 2
mscgym search c.json --restart --entry quantize[0] >/dev/null
try mscgym search c.json 2>&1 | tail -n 2
try mscgym search c.json --restart --entry quantize[1] | tail -n 1
ls w
