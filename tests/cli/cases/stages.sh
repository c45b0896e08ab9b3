# A configuration that names its stages, as in MSC's RFC: each stage is done once.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
cp "$digits/digits.onnx" "$digits/calibration.npz" .

# config NAME: writes NAME.json with all stages.
config() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "runtime", "log_file": "MSC_LOG",
  "model": "digits.onnx", "dataset": {"inputs": "calibration.npz", "samples": 64},
  "prepare": {},
  "parse": {"graph": "graph.json"},
  "baseline": {"check_config": {"atol": 0.05}},
  "optimize": {
    "prune": {
      "runtime": false,
      "gym": [{"env": {"bounds": {"macs_ratio": {"max": 0.7}}}, "agent": {"type": "random"},
               "budget": {"trials": 10}}]
    },
    "quantize": {
      "strategy_file": "msc_quantize.json", "target": "generic", "runtime": false,
      "gym": [{"record": "searched_config.json",
               "env": {"strategy": "distill_loss", "choices": [{"bits": 8}, {"bits": 4}],
                       "bounds": {"bit_ops_ratio": {"max": 0.03}}},
               "agent": {"type": "random"}, "budget": {"trials": 20}}]
    },
    "distill": true,
    "track": {"samples": 8}
  },
  "compile": {"export": {"model": "small.onnx"}, "profile": {"repeat": 20}}
}
END_OF_CONFIG
}

# stages CONFIG: runs it and lists the stages that were done.
stages() {
    mscgym search "$1" >"$1.out" 2>"$1.err"
    echo "exit $?"
    grep -a -o '^[a-z]*\(\[0\]\)\?: \(begins\|unchanged\)$\|^stages: .*' "$1.err"
}

sums() {
    (cd "$1" && sha256sum -- *)
}

echo "== the first time, and the second"
config a
stages a.json
ls a
cp a.json.out first.out
sums a | grep -v MSC_LOG >first
stages a.json
sums a | grep -v MSC_LOG | cmp - first && cmp a.json.out first.out && echo "nothing is computed again"
grep -c . first
tail -n 1 first.out | sed 's/[^ ]* falls most, by [0-9.]* dB/X falls most/'
jq -c 'keys' a/msc_track.json
jq -r '.stages[].stage' a/msc_stages.json

echo "== what has changed is done, and what rests on it"
sed -i 's/"samples": 8/"samples": 4/' a.json
stages a.json | grep -v unchanged$
sed -i 's/"atol": 0.05/"atol": 0.01/' a.json
stages a.json | grep -v unchanged$
sed -i -e 's/"small.onnx"/"less.onnx"/' -e 's/"runtime", "log/"info", "log/' a.json
stages a.json | grep -v unchanged$
test -s a/less.onnx && echo "under its new name"
sed -i 's/"trials": 20/"trials": 30/' a.json
stages a.json | grep 'begins\|exit'
mscgym search a.json --retry-failed 2>&1 >/dev/null | grep -o '^[a-z]*\[0\]: begins$'
rm a/less.onnx
stages a.json | grep -v unchanged$
test -s a/less.onnx && echo "the model is back"
echo '{' >a/msc_stages.json
stages a.json
grep -h '^warning.*stages' a.json.err
cp "$digits/digits.onnx" other.onnx
sed -i 's/"digits.onnx"/"other.onnx"/; s/less.onnx/smaller.onnx/' a.json
stages a.json | grep begins

echo "== by their other names"
mscgym config --show a.json >shown.json
try mscgym config --show shown.json | cmp - <(cat shown.json; echo "exit 0") && jq -c '[.prepare, .parse, .track, .export, .quantize.gym[0].distill]' shown.json
mscgym track a.json:baseline a.json:export --samples 4 --quiet | head -n 1

echo "== killed at any time"
config b
sed -i 's/"workspace": "b"/"workspace": "c"/' b.json
mv b.json c.json
config b
mscgym search b.json --quiet >/dev/null
for n in 1 2 3 4 5 6; do
    killed $n c/msc_stages.json '"stage":' mscgym search c.json --quiet
done
mscgym search c.json --quiet >/dev/null
for file in msc_prune.json msc_quantize.json small.onnx msc_track.json graph.json graph.safetensors; do
    cmp b/$file c/$file
done && echo "the same files"
stages c.json | tail -n 1

echo "== what does not go"
refuse() {
    jq "$1" b.json >d.json
    mscgym config --show d.json 2>&1 >/dev/null
    echo "exit $?"
}
refuse 'del(.optimize.quantize)'
refuse '.track = {}'
refuse '.optimize.tracks = {}'
refuse '.prepare = {"golden": 5}'
refuse 'del(.dataset)'
refuse '.compile.export.model = ""'
refuse '.optimize.distill = 3'
refuse '.parse.graph = "graph"'
