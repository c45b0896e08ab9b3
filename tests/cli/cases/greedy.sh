# --baseline greedy adds a second search whose record can be used like any other.
. "$(dirname "$0")/../lib.sh"
tiny g
try mscgym search g.json --baseline greedy | grep -c 'the greedy search beside it'
sed 's/.*\("agent":{"type":"grid_search"[^}]*}\).*/\1/;q' g/tiny.greedy.jsonl
try mscgym verify g/tiny.greedy.jsonl --sample 3
try mscgym export g/tiny.greedy.jsonl -o greedy.onnx >/dev/null
ls greedy.onnx
try mscgym resume g/tiny.greedy.jsonl | tail -n 1
# A repeated search finds it complete.
cp g/tiny.greedy.jsonl before.jsonl
try mscgym search g.json --baseline greedy | tail -n 1
cmp before.jsonl g/tiny.greedy.jsonl && echo "the same record"
