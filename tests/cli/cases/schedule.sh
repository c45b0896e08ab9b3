# `schedule`: the variants of steps are measured, shown, set and kept; a search of them resumes with
# equal first tries, whatever was kept meanwhile. Times differ, so only what must hold is printed.
. "$(dirname "$0")/../lib.sh"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
digits=$FILES/../../../examples/digits
mscgym quantize "$digits/digits.onnx" --inputs "$digits/calibration.npz" -o q.onnx \
    --effort fast --float 0 --quiet >/dev/null 2>&1

echo "== errors"
try mscgym schedule q.onnx --device cpu --show none
try mscgym schedule q.onnx --device cpu --set "/2/Conv=unknown"
try mscgym schedule q.onnx --device cpu --set "/2/Conv"
try mscgym schedule q.onnx --device cpu --show /2/Conv --record x.jsonl
try mscgym schedule q.onnx --device cpu --rounds 0
try mscgym schedule missing.onnx --device cpu
ls cache 2>/dev/null

echo "== a folder that cannot be written is told before any measurement"
: >file
for words in "" "--set /2/Conv=direct"; do
    XDG_CACHE_HOME=$PWD/file try mscgym schedule q.onnx --device cpu --rounds 10000 $words |
        sed "s:$PWD/::"
done

echo "== every variant"
mscgym schedule q.onnx --device cpu --rounds 1 --json >all.json
jq -c '[.classes[] | .joint, .steps, .rows, .cols, .depth]' all.json
jq '[.classes[] | (.variants | length >= 2) and (.by_rule as $n | .variants | any(.name == $n)) and
     (.chosen as $n | .variants | any(.name == $n)) and (.variants | all(.us > 0))] | all' all.json
jq '.us > 0 and .by_rule_us > 0 and .spread >= 0 and (.folder | test("/cache/mscgym$"))' all.json
jq '.choices | length' cache/mscgym/cpu-*.choices.json
mscgym schedule q.onnx --device cpu --rounds 1 >all.txt
head -n 1 all.txt | tr -s ' '
grep -c "^whole network: by rule .* us, fastest variants .* us (.* of it); two equal runs differ by .* %$" all.txt

echo "== one step"
variant=$(jq -r '.classes[1] | .by_rule as $n | .variants[].name | select(. != $n)' all.json | head -n 1)
try mscgym schedule q.onnx --device cpu --set "/2/Conv=$variant" --set "/2/Conv=$(jq -r '.classes[1].by_rule' all.json)" \
    2>&1 | grep -c "another --set gives a step of equal work another variant; equal steps share one"
mscgym schedule q.onnx --device cpu --rounds 1 --set "/2/Conv=floats" --set "/10/Gemm=floats" --json |
    jq -c '[.[] | .joint, .chosen]'
mscgym schedule q.onnx --device cpu --rounds 1 --set "/2/Conv=$variant" >set.txt
head -n 1 set.txt
grep -c "^  $variant  *[0-9.]* us, chosen$" set.txt
grep -c "^  .*[0-9.] us, by rule$" set.txt
mscgym schedule q.onnx --device cpu --rounds 1 --show /2/Conv --json >one.json
jq --arg v "$variant" '.chosen == $v' one.json
jq --arg v "$variant" '[.choices[] | select(.rows == 64 and .depth == 144)] | length == 1 and .[0].variant == $v' \
    cache/mscgym/cpu-*.choices.json
echo '{' >"$(echo cache/mscgym/cpu-*.choices.json)"
try mscgym schedule q.onnx --device cpu --rounds 1 --show /2/Conv --json 2>&1 | grep -c "are ignored"
rm cache/mscgym/cpu-*.choices.json

echo "== a search"
search() {
    cat >search.json <<END_OF_CONFIG
{"workspace": "work", "verbose": "error", "device": "cpu", "model": "q.onnx",
 "dataset": {"inputs": "$digits/calibration.npz", "samples": 2, "batch": 1},
 "gym": [{"record": "s.jsonl", "env": {"type": "schedule", "objectives": ["relative_latency"], "rounds": 1},
          "agent": {"type": "random"}, "budget": {"trials": $1}}]}
END_OF_CONFIG
    mscgym search search.json >/dev/null
}
search 4
jq -r 'select(.baseline) | .baseline' work/s.jsonl | head -n 1
jq -c 'select(.baseline == "by rule") | .metrics.relative_latency' work/s.jsonl
cp work/s.jsonl before.jsonl
mscgym schedule q.onnx --device cpu --rounds 1 --record work/s.jsonl | tail -n 1 | grep -c "in .*/cache/mscgym$"
search 8
head -n "$(wc -l <before.jsonl)" work/s.jsonl | cmp - before.jsonl && echo "the same trials"
echo $(($(grep -c '"kind":"trial"' work/s.jsonl) - $(grep -c '"kind":"trial"' before.jsonl))) more
mv work/s.jsonl.params first.json
try search 12
ls work/s.jsonl.params 2>/dev/null
mv first.json work/s.jsonl.params
search 12
toy toy 3
mscgym search toy.json >/dev/null
try mscgym schedule q.onnx --device cpu --record toy/toy.jsonl
