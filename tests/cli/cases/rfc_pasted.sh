# Snippets of MSC's RFC as printed there: each JSON error is reported with its place.
. "$(dirname "$0")/../lib.sh"
cat >first.json <<'END'
{
  "workspace": "msc_workspace",
  "verbose": "runtime",
  "log_file": "MSC_LOG",
  "baseline": {
    "check_config": {
      "atol": 0.05
    }
  },
  "quantize": {
    "strategy_file": "msc_quantize.json",
    "target": "tensorrt",
  },
  "profile": {
    "repeat": 1000
  },
  ...
}
END
cat >second.json <<'END'
{
      ...
      "quantize": {
        "strategy_file": "msc_quantize.json",
        "target": "tensorrt",
        “gym”:[
          {
            “record”:”searched_config.json”,
            “env”:{
              “strategy”:”distill_loss”
            },
            “agent”:{
              “type”:”grid_search”,
            }
          },
        ]
      },
      ...
}
END
try mscgym config --show first.json
sed -i 's/"tensorrt",/"tensorrt"/' first.json
try mscgym config --show first.json
sed -i -e 's/^  \.\.\./  "model": "tiny.onnx", "dataset": {"inputs": "inputs.npz"}/' first.json
try mscgym config --show first.json | tail -n 1

try mscgym config --show second.json
sed -i '2d' second.json
try mscgym config --show second.json
sed -i 's/“gym”/"gym"/' second.json
try mscgym config --show second.json
sed -i 's/“record”:”/"record":"/' second.json
try mscgym config --show second.json
sed -i 's/[“”]/"/g' second.json
try mscgym config --show second.json
sed -i 's/search",$/search"/' second.json
try mscgym config --show second.json
sed -i '14s/,$//' second.json
try mscgym config --show second.json
sed -i -e '17d' -e '2i"model": "tiny.onnx", "dataset": {"inputs": "inputs.npz"},' second.json
try mscgym config --show second.json
sed -i '17s/,$//' second.json
try mscgym config --show second.json | tail -n 1

# Stages without a model, and unknown keys.
for stage in prune distill track; do
    echo "{\"$stage\": {}, \"gym\": [{\"env\": {\"type\": \"toy\"}}]}" >c.json
    try mscgym config --show c.json
done
echo '{"colour": 1}' >c.json
try mscgym config --show c.json
mscgym config | grep 'prune\|track'

# MSCGraph JSON without its weights can be printed, but not run.
mscgym graph "$FILES/tiny.onnx" -o alone.json
rm alone.safetensors
for form in "" --json --prototxt; do
    cmp <(mscgym graph alone.json $form) <(mscgym graph "$FILES/tiny.onnx" $form) && echo "the same"
done 2>&1
try mscgym graph alone.json --sites
try mscgym graph alone.json --placement
try mscgym run alone.json --input x="$FILES/x.npy" --output o
