# A section without searches applies its existing strategy file, which is replaced only on request.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
cp "$digits/digits.onnx" "$digits"/*.npz "$digits"/*_labels.npy .

# config NAME SECTIONS [KEYS]: writes NAME.json with these sections and top-level keys.
config() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "warning", "model": "digits.onnx", $3
  "dataset": {"inputs": "calibration.npz", "labels": "calibration_labels.npy", "batch": 64,
              "validation": {"inputs": "validation.npz", "labels": "validation_labels.npy"}},
  $2
}
END_OF_CONFIG
}

prune='"prune": {"runtime": false, "gym": [{"env": {"choices": [{"density": 1}, {"density": 0.5}],
  "bounds": {"macs_ratio": {"max": 0.6}}}, "agent": {"type": "random"}, "budget": {"trials": 4}, "parallel": 1}]}'
# quantize CHOICES [KEYS]: a section with a search, with these choices and keys of the search.
quantize() {
    echo "\"quantize\": {\"target\": \"generic\", \"runtime\": false, \"gym\": [{\"env\": {\"choices\": [$1]},
      \"agent\": {\"type\": \"random\"}, \"budget\": {\"trials\": 4}, \"parallel\": 1${2:+, $2}}]}"
}
plain='"quantize": {"target": "generic", "runtime": false}'
plain_prune='"prune": {"runtime": false}'

# loss STRATEGY: relative loss of the model with the strategy on all samples, by `track`.
loss() {
    mscgym track digits.onnx --strategy "$1" --inputs calibration.npz --samples 0 --json 2>/dev/null |
        jq '.tensors[-1].snr_db | pow(10; -. / 10)'
}

# applied NAME [SECTION]: runs NAME.json; the strategy file is unchanged, and report and model agree with it.
applied() {
    local file=$1/msc_${2:-quantize}.json
    cp "$file" before
    rm -f $1/digits.onnx
    mscgym search $1.json --quiet --json >out 2>err
    echo "exit $?"
    cat err
    cmp before "$file" && echo "the file stayed"
    jq -c '[.[] | [.entry, has("applied")]]' out
    jq -n --argjson loss "$(loss "$file")" --slurpfile r out \
        '$r[0][-1].applied.metrics.distill_loss / $loss - 1 | fabs < 1e-4'
    mscgym export --model digits.onnx --strategy "$file" -o own.onnx
    cmp own.onnx $1/digits.onnx && echo "the model is that of the file"
}

echo "== four bits, of a search"
config a "$(quantize '{"bits": 4}')"
mscgym search a.json --quiet --json >found
config a "$plain"
applied a
jq -n --slurpfile r out --slurpfile f found '[$r[0][0].applied, $f[0][0].winner] |
    .[0].metrics.distill_loss == .[1].metrics.distill_loss and .[0].metrics.accuracy == .[1].metrics.accuracy and
    .[0].validation.distill_loss == .[1].examined.validation.distill_loss'
try mscgym search a.json
try mscgym search a.json --dry-run
mscgym run a.json:quantize --inputs calibration.npz --tensor '*' -o stage.npz --quiet
mscgym run digits.onnx --strategy a/msc_quantize.json --inputs calibration.npz --tensor '*' -o file.npz --quiet
cmp stage.npz file.npz && echo "by its stage or its file"
mscgym track a.json:quantize --samples 4 --quiet | head -n 1

echo "== with better weights"
config b "$(quantize '{"bits": 4}' '"distill": true')"
mscgym search b.json --quiet --json >found
config b "$plain"
applied b
jq -n --slurpfile r out --slurpfile f found \
    '$r[0][0].applied.metrics.distill_loss == $f[0][0].distilled.metrics.distill_loss'
config b "$plain" '"distill": true,'
mscgym search b.json 2>&1 >/dev/null | grep distill

echo "== pruned"
config c "$prune"
mscgym search c.json --quiet --json >found
config c "$plain_prune"
applied c prune
config d "$prune, $(quantize '{"bits": 4}')"
mscgym search d.json --quiet --json >found
config d "$plain_prune, $plain"
applied d
config d "$plain_prune, $(quantize '{"bits": 8}, {"bits": 4}')"
rm d/quantize_0.jsonl*
cp d/msc_prune.json before
mscgym search d.json --quiet --json >out
cmp before d/msc_prune.json && jq -c '[.[] | has("applied")]' out
jq -c .prune d/msc_prune.json | cmp - <(jq -c .prune d/msc_quantize.json) && echo "bits behind the file's channels"

echo "== of a section of its own"
config j '"joint": {"runtime": false, "target": "generic", "gym": [{"env": {"choices": [{"bits": 4}]},
  "agent": {"type": "random"}, "budget": {"trials": 4}, "parallel": 1}]}'
mscgym search j.json --quiet --json >found
config j '"joint": {"runtime": false, "target": "generic"}'
applied j joint

echo "== what the program itself has made"
config e "$plain"
mscgym search e.json --quiet | head -n 2
cp e/msc_quantize.json first
mscgym search e.json --quiet | head -n 2
cmp first e/msc_quantize.json && echo "the same again"
sed -i 's/"batch": 64/"batch": 32/' e.json
try mscgym search e.json
mscgym search e.json --quiet --restart | head -n 2
cmp -s first e/msc_quantize.json || echo "anew"
ls e | grep -c msc_quantize.json
echo "-- changed by hand"
jq 'del(.edits[-1])' e/msc_quantize.json >less && cp less e/msc_quantize.json
mscgym search e.json --quiet | head -n 1
cmp less e/msc_quantize.json && echo "stayed"
echo "-- taken elsewhere"
config f "$plain"
mkdir f
cp first f/msc_quantize.json
sed -i 's/"batch": 64/"batch": 32/' f.json
mscgym search f.json --quiet | head -n 1
cmp first f/msc_quantize.json && echo "stayed"

echo "== stages alone: what an earlier run has left is made ready"
cat >final.json <<END_OF_CONFIG
{"workspace": "final", "verbose": "warning", "model": "digits.onnx", "dataset": {"inputs": "calibration.npz", "batch": 64},
 "prepare": {}, "parse": {"graph": "graph.json"}, "baseline": {"check_config": {"atol": 0.05}},
 "compile": {"export": {"model": "small.onnx"}, "profile": {"repeat": 3}}}
END_OF_CONFIG
try mscgym search final.json
mkdir final
cp d/msc_prune.json d/msc_quantize.json final
mscgym search final.json | sed 's/[0-9.e+-]* us.*/N us/; s/\(distill_loss: 0.0027\)[0-9]*/\1.../'
mscgym export --model digits.onnx --strategy final/msc_quantize.json -o own.onnx
cmp own.onnx final/small.onnx && cmp d/msc_quantize.json final/msc_quantize.json && ls final
mscgym search final.json --log-level info 2>&1 >/dev/null | grep -o 'stages: .*'
rm final/small.onnx
mscgym search final.json --quiet >/dev/null && cmp own.onnx final/small.onnx && echo "there again"
sed -i 's/"atol": 0.05/"atol": 1e-12/' final.json
mscgym search final.json 2>&1 >/dev/null | grep -c '^mscgym: baseline: .* atol 1e-12 and rtol 0'

echo "== on request"
cp a/msc_quantize.json kept
try mscgym search a.json --restart | grep -v '^ \|noise\|isolated\|^latency'
cmp kept a/msc_quantize.json.1 && echo "kept aside"
jq -c '[.edits[].choice] | unique' a/msc_quantize.json

echo "== what does not go with it"
refused() {
    cp "$1/msc_${2:-quantize}.json" before
    try mscgym search $1.json
    cmp before "$1/msc_${2:-quantize}.json" && echo "and stayed"
}
config b "$plain"
sed -i 's/digits.onnx/tiny.onnx/; s/calibration.npz/inputs.npz/; s/calibration_labels.npy/labels.npy/' b.json
cp "$FILES/tiny.onnx" "$FILES/inputs.npz" "$FILES/labels.npy" .
sed -i 's/"batch": 64/"batch": 2/; s/"validation": {.*}}/"validation": 0.2}/' b.json
refused b
sed 's/generic/onnxruntime/' a.json >g.json && sed -i 's/"workspace": "a"/"workspace": "g"/' g.json
mscgym search g.json --quiet >/dev/null
jq '.edits[0].choice = "mine"' g/msc_quantize.json >mine
rm -r g && mkdir g && cp mine g/msc_quantize.json
sed -i 's/onnxruntime/openvino/' g.json
refused g
config c "$plain_prune, $plain"
cp kept c/msc_quantize.json
refused c

echo "== damaged"
for how in 'head -c 300' 'tr \\042 !' 'sed s/strategy.1/strategy.9/' true; do
    rm -rf h && mkdir h
    config h "$plain"
    $how <kept >h/msc_quantize.json
    refused h
done
mscgym search h.json --restart --quiet | head -n 1
ls h | grep msc_quantize

echo "== a start that fails costs no file"
config i "$plain" '"outputs": ["nosuch"],'
mkdir i
cp kept i/msc_quantize.json
try mscgym search i.json --restart --quiet
cmp kept i/msc_quantize.json && echo "and stayed"
config i "$plain"
mscgym search i.json --quiet | head -n 1
mscgym search i.json --restart --quiet >/dev/null
cmp kept i/msc_quantize.json.1 && echo "kept under another name"
sed -i 's/"verbose": "warning"/"verbose": "info", "outputs": ["nosuch"]/' i.json
cp kept i/msc_quantize.json
rm i/msc_quantize.json.1
try mscgym search i.json --restart 2>&1 | grep -e 'restored the old' -e 'is now' -e exit
cmp kept i/msc_quantize.json && echo "and stayed"
