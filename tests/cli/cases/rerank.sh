# `rerank` orders the best trials by a program's score for their exported models, or by their
# results in the runtime, which a program replaces here.
. "$(dirname "$0")/../lib.sh"

# reranked NAME RERANK: a search with this `rerank`.
reranked() {
    tiny "$1" '"bounds": {"bit_ops_ratio": {"max": 0.06}}'
    sed -i 's|"agent"|"rerank": '"$2"', "agent"|; s/{"bits": 4}/{"bits": 6}, {"bits": 4}/' "$1.json"
}
# The program's score is the number of its runs so far; it notes the checksum of each model.
cat >score.sh <<'END'
#!/bin/sh
cksum <"$1" >>runs.txt
echo "looking at it"
wc -l <runs.txt
END
chmod +x score.sh
reranked a '{"top": 4, "command": {"argv": ["./score.sh", "{model}"], "maximise": true}}'
mscgym search a.json >result.txt
names() { # the first column of the table
    grep -A 10 '^[0-9]* plans, ordered by' "$1" | sed 's/  [0-9-].*//'
}
names result.txt
grep -o "best by the search: trial\|winner: trial" result.txt
measured() { # number of plans measured, and whether any was measured twice
    echo "measured: $(wc -l <runs.txt), twice: $(sort runs.txt | uniq -d | wc -l)"
}
measured
jq -c '[.by, .maximise, (.plans[] | .rank, .value), (.references[] | .examined.score)]' \
    a/tiny.jsonl.rerank.json
best=$(jq '.plans[0].id' a/tiny.jsonl.rerank.json)
mscgym export a/tiny.jsonl --trial "$best" -o best.onnx --quiet --allow-plugins
mscgym export a/tiny.jsonl -o winner.onnx --quiet --allow-plugins
cmp best.onnx a/tiny.onnx && cmp best.onnx winner.onnx && echo "delivered"
jq '[.winner.id, .reranked.plans[0].id, (.reranked.references | length)] | .[0] != .[1], .[2]' \
    <(mscgym show a/tiny.jsonl --json)
diff <(grep -v '^strategy\|^model' result.txt) <(mscgym show a/tiny.jsonl) && echo "shown again"
mscgym search a.json --quiet | cmp - result.txt && echo "the same again"
measured
ls a
# The page shows the delivered plan in its box, tiles and validation.
mscgym report a/tiny.jsonl --json >document.json
jq -c '.records[0] | .delivered.id == .numbers.reranked.plans[0].id,
    (.delivered.examined | has("score") and has("validation")), .verdict.headline' document.json
jq -r '.records[0].verdict.reasons[] | select(test("In the search|measured|did not use"))' document.json
mscgym report a/tiny.jsonl -o page.html >/dev/null
grep -c "<dt><span title=\"distill_loss\">Loss</span></dt><dd><b>$(jq -r '.records[0].delivered.metrics.distill_loss' document.json |
    xargs printf %.4g)</b>" page.html

cp a/tiny.jsonl.rerank.json old.json
echo "- more trials, another program, a record set aside"
mscgym resume a/tiny.jsonl --trials 40 --quiet --allow-plugins >/dev/null
measured
cp a/tiny.jsonl.rerank.json new.json
sed 's/"violation": 0/"violation": 1/' new.json >a/tiny.jsonl.rerank.json
shown() {
    mscgym show a/tiny.jsonl 2>&1 | grep '^[0-9]* plans, ordered by\|rerank.json'
}
shown
cp old.json a/tiny.jsonl.rerank.json
shown
cp new.json a/tiny.jsonl.rerank.json
shown
rm runs.txt
sed -i 's/"{model}"\]/"{model}", "again"]/
    s/"trials": 12/"trials": 40/' a.json
mscgym search a.json --quiet >/dev/null
measured
mscgym search a.json --quiet --restart >/dev/null
ls a | grep rerank

echo "- killed on the way"
cat >slow.sh <<'END'
#!/bin/sh
echo "$1" >>slow.txt
if [ "$(wc -l <slow.txt)" = 3 ]; then
    sleep 1000
fi
wc -l <slow.txt
END
chmod +x slow.sh
reranked k '{"top": 4, "command": ["./slow.sh", "{model}"]}'
mscgym search k.json >/dev/null 2>&1 &
search=$!
while [ "$(cat slow.txt 2>/dev/null | wc -l)" -lt 3 ]; do
    sleep 0.01
done
{
    kill -KILL $search
    wait $search
} 2>/dev/null # the shell's message on the kill
mscgym show k/tiny.jsonl | grep -c '^[0-9]* plans, ordered by'
while ! mscgym resume k/tiny.jsonl --quiet --allow-plugins >again.txt 2>/dev/null; do
    sleep 0.1 # until the orphan has ended
done
grep '^[0-9]* plans, ordered by' again.txt
echo "runs: $(wc -l <slow.txt)"

echo "- what a program does wrong"
said() {
    try mscgym search "$1.json" >result.txt
    grep 'warning:\|^[0-9]* plans, ordered by\|was .*failed\|exit' result.txt | sed 's/failed  .*/failed/'
}
cat >bad.sh <<'END'
#!/bin/sh
n=$(cat n.txt 2>/dev/null || echo 0)
echo $((n + 1)) >n.txt
case $n in
    0) echo "one half" ;;
    1) echo 1; exit 3 ;;
    2) exec sleep 1000 ;;
    *) echo $n ;;
esac
END
chmod +x bad.sh
reranked b '{"top": 4, "command": {"argv": ["./bad.sh", "{model}"], "maximise": true, "timeout": 1}}'
sed -i 's/"verbose": "error"/"verbose": "warning"/' b.json
said b
reranked c '{"top": 4, "command": ["./absent.sh", "{model}"]}'
sed -i 's/"verbose": "error"/"verbose": "warning"/' c.json
said c
reranked d '{"top": 4}'
sed -i 's/"verbose": "error"/"verbose": "warning"/' d.json
said d

echo "- in the runtime"
plainly() { # sizes depend on what the target supports, which other tests check
    grep -v choice | sed 's/: [a-z]* [0-9]*, was/: PLAN, was/'
}
sed -i 's/"workspace": "d"/"workspace": "e"/; s/0.06}/0.0624}/' d.json
sed -i 's/"target": "generic", /"target": "onnxruntime", "runtime": {"rounds": 4}, /' d.json
said d | plainly
export FAKE_LOG=$PWD/requests.txt
export MSCGYM_RUNTIME=$FILES/fake_runtime.py
said d | plainly
n_plans=$(jq '(.plans + .references) | length' e/tiny.jsonl.rerank.json)
echo "$((n_plans * 2 == $(grep -c '"method": *"outputs"' requests.txt))) $(grep -c latency requests.txt)"
jq -c '[.by, (.plans[] | .rank), (.plans + .references | map(.examined.runtime.latency_us) | unique)]' \
    e/tiny.jsonl.rerank.json
rm requests.txt
said d | plainly
jq -c .method requests.txt
# The runtime is missing now: what it measured before is still used.
MSCGYM_RUNTIME=no/runtime said d | plainly
# The runtime's program dies: the search's order is kept, and nothing is measured twice.
rm e/tiny.jsonl.rerank.json
FAKE='{"end": "latency"}' said d | plainly | sed 's|: /.*/fake|: fake|'
rm requests.txt
said d | plainly
jq -r .method requests.txt | sort | uniq -c

echo "- what is refused"
for rerank in '{"topp": 3}' '{"top": 0}' '5' '{"command": "score"}' '{"command": []}' \
    '{"command": ["score"]}' '{"command": ["score", "{outputs}"]}' \
    '{"command": {"argv": ["score", "{model}"], "minimise": true}}'; do
    reranked r "$rerank"
    try mscgym search r.json
done
try mscgym resume b/tiny.jsonl
mscgym config --show b.json | jq -c '.quantize.gym[0].rerank'
