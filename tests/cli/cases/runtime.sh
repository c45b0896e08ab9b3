# At the end of a search, its results are measured in the target runtime. A program replaces the
# runtime: its outputs are zeros, whose loss is 1 by definition.
. "$(dirname "$0")/../lib.sh"
tiny a '"bounds": {"bit_ops_ratio": {"max": 0.0624}}'
sed -i 's/"target": "generic", /"target": "onnxruntime", "runtime": {"rounds": 4}, /' a.json
export MSCGYM_RUNTIME=$FILES/fake_runtime.py FAKE_LOG=$PWD/requests.txt

# Latencies of the winner, uniform 8, uniform 4 and the float model.
FAKE='{"us": [30, 20, 25, 10]}' try mscgym search a.json --quiet >result.txt
# File sizes are checked by other tests.
grep 'winner\|runtime\|file_bytes\|exit' result.txt | sed 's/   */  /g; s/\b[12][0-9.]* KB/KB/g'
jq -c '[.method, .runtime, .threads, .batch, .rounds, (.models | length),
    ((.inputs // "") | sub(".*/"; "")), ((.model // "") | sub(".*/"; ""))]' requests.txt
mscgym show a/tiny.jsonl >shown.txt
diff <(grep -v '^strategy\|^model\|^exit' result.txt) shown.txt && echo "shown again"
ls a
for file in $(jq .winner.examined.file_bytes a/tiny.jsonl.result.json); do
    whole=$(stat -c %s a/tiny.onnx) # includes the names of its record and trial
    echo "$((whole - file > 0 && whole - file < 200))"
done
jq -c '.reference.examined | .runtime.distill_loss = (.runtime.distill_loss * 1e9 | round / 1e9)' a/tiny.jsonl.result.json
stat -c %s "$FILES/tiny.onnx"

echo "- what goes wrong costs nothing but these numbers"
said() { # the messages, and which plans have a loss and a latency
    grep 'runtime:\|warning\|exit' result.txt | sed 's/, nothing was measured.*: /, MISSING: /'
    mscgym show a/tiny.jsonl --json | jq -c '[.winner, .reference, .baselines[]] |
        map(.examined.runtime | [.distill_loss and true, .latency_us])'
}
sed -i 's/"verbose": "error"/"verbose": "warning"/' a.json
MSCGYM_RUNTIME=no/runtime try mscgym search a.json >result.txt
said
FAKE='{"refuse": "plan_1"}' try mscgym search a.json >result.txt
said
FAKE='{"end": "hello"}' try mscgym search a.json >result.txt
said | sed 's|: /.*/fake|: fake|'
FAKE='{"end": "latency"}' try mscgym search a.json >result.txt
said | sed 's|: /.*/fake|: fake|'
rm -f requests.txt
FAKE='{"hang": "outputs"}' mscgym search a.json >result.txt 2>&1 &
search=$!
while ! grep -q hello requests.txt 2>/dev/null; do
    sleep 0.01
done
sleep 0.2
kill -TERM $search
wait $search
echo "exit $?"
# Parent and worker both report the stop.
grep 'runtime:\|stopp\|validation.samples' result.txt | sed 's/   */  /g' | sort
ls a
mscgym resume a/tiny.jsonl --quiet | grep -c 'runtime.latency_us'
sed 's/"target": "onnxruntime"/"target": "openvino"/; s/{"bits": 4}/{"bits": 8, "observer": "mse"}/
    s/"workspace": "a"/"workspace": "v"/; s/0.0624/1/' a.json >v.json
mscgym search v.json --quiet | grep runtime

echo "- an unknown runtime is refused before the search"
sed 's/"rounds": 4/"name": "onnxruntim"/; s/"workspace": "a"/"workspace": "u"/' a.json >u.json
try mscgym search u.json
try mscgym search u.json --dry-run
ls u 2>/dev/null
MSCGYM_RUNTIME=no/runtime mscgym search u.json --quiet | grep -c "nothing was measured"

echo "- as one wishes"
sed -i 's/{"rounds": 4}/false/' a.json
mscgym search a.json --quiet | grep -c runtime
sed 's/"runtime": false/"runtime": {"round": 3}/' a.json >b.json
try mscgym search b.json
sed 's/"runtime": false/"runtime": 5/' a.json >b.json
try mscgym search b.json
mscgym config --show a.json | jq .quantize.runtime
sed 's/"runtime": false/"runtime": {"threads": 2}/' a.json >b.json
mscgym config --show b.json | jq -c .quantize.runtime
