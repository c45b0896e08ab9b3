# A runtime that reports success without outputs, or with invalid ones, changes no order: the winner
# of the search remains.
. "$(dirname "$0")/../lib.sh"
export MSCGYM_RUNTIME=$FILES/fake_runtime.py
tiny a '"bounds": {"bit_ops_ratio": {"max": 0.0624}}'
sed -i 's/"target": "generic", /"target": "onnxruntime", "runtime": {"rounds": 4}, /
    s/"agent"/"rerank": {"top": 3}, "agent"/; s/"verbose": "error"/"verbose": "warning"/' a.json

plainly() { # trial numbers vary, and other tests check them
    sed -E 's/trial [0-9]+/TRIAL/g; s/of [0-9]+ plans/of N plans/; s|/[^ :]*/||g' | sort | uniq
}
# ordered KIND PART: how a search treats invalid outputs, and what it delivers.
ordered() {
    echo "- $1 $2"
    rm -rf a
    FAKE='{"lie": ["'$1'", "'$2'"]}' try mscgym search a.json >result.txt
    grep 'rerank:\|is first and\|comes first\|cannot be measured\|not measured\|exit' result.txt | plainly
    mscgym show a/tiny.jsonl --json >shown.json
    jq -c '[(.reranked.by // "the search"), (.runtime.unmeasured and true)]' shown.json
    winner=$(jq 'if .reranked then .reranked.plans[0].id else .winner.id end' shown.json)
    mscgym export a/tiny.jsonl --trial "$winner" -o winner.onnx --quiet
    cmp winner.onnx a/tiny.onnx && echo "delivered"
    mscgym show a/tiny.jsonl 2>&1 | grep -c '^rerank: none of'
}
for kind in absent torn named fewer shape type nan; do
    ordered $kind .onnx
done
echo "- of one plan only: it comes last, though it has a time"
ordered absent plan_0
jq '[.reranked.plans[] | .failure and true] | .[0], .[-1]' shown.json

echo "- without rerank a winner that is refused is named"
sed -i 's/"rerank": {"top": 3}, //' a.json
FAKE='{"refuse": "plan_0"}' try mscgym search a.json --restart >result.txt
grep 'refuse\|exit' result.txt | plainly
mscgym show a/tiny.jsonl | grep -c 'refuses the winner'
FAKE='{"refuse": ".onnx"}' try mscgym search a.json --restart >result.txt
grep 'refuse\|exit' result.txt | plainly

echo "- quantize: what a runtime refuses is not left"
one() {
    FAKE="$1" try mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o q.onnx >result.txt
    grep 'refuse\|cannot be measured\|not measured\|differ\|exit' result.txt | plainly
    ls q.onnx 2>/dev/null
    rm -f q.onnx
}
one '{"refuse": "q.onnx"}'
one '{"refuse": ".onnx"}'
one '{"lie": ["absent", ".onnx"]}'

echo "- export: the same"
cp a/msc_quantize.json strategy.json
exported() { # $1: what the runtime does
    FAKE="$1" try mscgym export a/tiny.jsonl -o e.onnx --quiet
    FAKE="$1" try mscgym export --model "$FILES/tiny.onnx" --strategy strategy.json -o f.onnx --quiet
    ls e.onnx f.onnx 2>/dev/null
    rm -f e.onnx f.onnx
}
exported '{"refuse": "e.onnx"}'
exported '{"refuse": "f.onnx"}'
exported '{"refuse": ".onnx"}'
