# The metric latency_us sums times from a table that is measured once and kept with the record. A
# program replaces the runtime: as floats conv takes 100 us and fc 50 us, as integers 30 and 20 us,
# and a conversion takes 4 us.
. "$(dirname "$0")/../lib.sh"
tiny a '"objectives": ["latency_us"], "bounds": {"latency_ratio": {"max": 1}}'
sed -i 's/{"bits": 4}/{"float": true}/
    s/"target": "generic", /"target": "onnxruntime", "runtime": false, /' a.json
integers='["quantize", "x_quantized", 4], ["compute", "conv", 30], ["compute", "fc", 20]'
floats='["compute", "conv_nchwc", 100], ["compute", "fc", 50]'
mixed='["quantize", "x", 4], ["dequantize", "x", 4], ["compute", "conv", 100],
    ["quantize", "r", 4], ["compute", "fc", 20]'
kernels="{\"kernels\": [[$floats], [$integers], [$mixed], [$integers], [$integers]]}"
export MSCGYM_RUNTIME=$FILES/fake_runtime.py FAKE_LOG=$PWD/requests.txt

FAKE=$kernels try mscgym search a.json --quiet >result.txt
grep 'latency\|^trials\|exit' result.txt | sed 's/   */  /g'
jq -c '[.method, .runtime, .threads, .batch, (.models | length)]' requests.txt
head -n 1 a/tiny.jsonl | jq -c '[.env.latency_of, [.space.metrics[].name | select(startswith("lat"))]]'

echo "- measured once: who goes on, or looks at it, asks nobody"
rm requests.txt
export MSCGYM_RUNTIME=no/runtime
cp -r a cut
head -n 8 a/tiny.jsonl >cut/tiny.jsonl
mscgym resume cut/tiny.jsonl --quiet >/dev/null
cmp <(mscgym show a/tiny.jsonl --canonical | tail -n +2) \
    <(mscgym show cut/tiny.jsonl --canonical | tail -n +2) && echo "resumed equal"
mscgym verify a/tiny.jsonl && echo verified

echo "- another table is another search's, and a lost one is not made up"
export MSCGYM_RUNTIME=$FILES/fake_runtime.py
sed 's/"workspace": "a"/"workspace": "b"/' a.json >b.json
FAKE=${kernels//100/90} mscgym search b.json --quiet >/dev/null
cp b/tiny.jsonl.params cut/tiny.jsonl.params
try mscgym resume cut/tiny.jsonl --quiet
rm cut/tiny.jsonl.params
try mscgym resume cut/tiny.jsonl --quiet
try mscgym verify cut/tiny.jsonl
ls cut | grep params

echo "- without the runtime"
sed 's/"workspace": "a"/"workspace": "own"/; s/"verbose": "error"/"verbose": "warning"/; s/"max": 1/"max": 100/' a.json >own.json
MSCGYM_RUNTIME=no/runtime mscgym search own.json 2>&1 >/dev/null | sed 's/^[^ ]* //; s/: the best.*//' | grep latency
head -n 1 own/tiny.jsonl | jq -r '.env.latency_of' | sed 's/kernels .*, 1/kernels NUMERICS, 1/'
