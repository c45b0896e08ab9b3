# The example of MSC's RFC with its punctuation repaired, and a model and a dataset added.
. "$(dirname "$0")/../lib.sh"
cat >rfc.json <<END
{
  "workspace": "msc_workspace",
  "verbose": "runtime",
  "log_file": "MSC_LOG",
  "model": "$FILES/tiny.onnx",
  "dataset": {"inputs": "$FILES/inputs.npz"},
  "baseline": {"check_config": {"atol": 0.05}},
  "quantize": {
    "strategy_file": "msc_quantize.json",
    "target": "tensorrt",
    "gym": [
      {
        "record": "searched_config.json",
        "env": {"strategy": "distill_loss"},
        "agent": {"type": "grid_search"}
      }
    ]
  },
  "profile": {"repeat": 1000}
}
END
try mscgym search rfc.json --quiet | grep -v '^ \|^uniform\|^winner\|^uncompressed' |
    sed 's/[0-9.e+]* us.*/N us/'
ls msc_workspace
# Without `gym`: 8 bits everywhere, calibrated and exported.
sed -e '/"gym"/,/^    \]/d' -e 's/"target": "tensorrt",/"target": "tensorrt"/' \
    -e 's/"workspace": "msc_workspace"/"workspace": "plain"/' rfc.json >plain.json
try mscgym search plain.json --quiet | grep -v '^ \|^uniform\|^uncompressed' |
    sed 's/[0-9.e+]* us.*/N us/; s/^\(winner: uniform 8\).*/\1/'
ls plain
