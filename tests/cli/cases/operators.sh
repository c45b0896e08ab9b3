# A network with operators of a made-up domain: printed and saved without a plug-in; computed, compressed and searched
# with one; refused without. tests/long/check_operators.py compares numbers.
. "$(dirname "$0")/../lib.sh"
cp "$OPERATORS" ops.so
cp "$EXAMPLES/../operators/made_up.onnx" "$EXAMPLES/../operators/made_up.npz" .
mscgym graph made_up.onnx | sed -n '/ID_4/,/ID_5/p;/ID_9/,/ID_10/p'
for form in json msc; do
    mkdir -p $form
    mscgym graph made_up.onnx -o $form/saved.$form
    diff <(mscgym graph made_up.onnx) <(mscgym graph $form/saved.$form) && echo "the same"
done
mscgym graph made_up.onnx --prototxt | grep -A30 'name: "fold"' | grep -A1 'key: "\(op\|domain\|attr_mode\)"'
mscgym graph made_up.onnx --sites

echo "== run"
try mscgym run made_up.onnx --inputs made_up.npz -o out.npz
mscgym run made_up.onnx --inputs made_up.npz -o out.npz --operators ./ops.so --quiet
for form in json msc; do
    mscgym run $form/saved.$form --inputs made_up.npz -o $form.npz --operators ops.so --quiet
    cmp out.npz $form.npz && echo "the same"
done

echo "== plug-ins that are none"
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --operators missing.so
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --operators made_up.npz 2>&1 | sed 's/: [^:]*$/: .../'
cp "$HILL_CLIMB" agent.so
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --operators agent.so
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --operators ops.so --operators ops.so

echo "== programs"
# Answers with the members that a request names; no array library is needed.
cat >ops.py <<'END'
import base64, json, struct, sys
def answer(message):
    print(json.dumps(message), flush=True)
def numbers(tensor):
    data = base64.b64decode(tensor["data"])
    return struct.unpack(f"<{len(data) // 4}f", data)
def tensor(values, dims):
    return {"dtype": "float32", "dims": dims, "data": base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()}
def compute(m):
    x, dims = numbers(m["inputs"][0]), m["inputs"][0]["dims"]
    n = dims[-1]
    if m["op"] == "Blur":
        k, step = numbers(m["inputs"][1]), int(m["attrs"]["step"]["value"])
        y = []
        for i, v in enumerate(x):
            at = i % n
            y.append((k[0] * x[i - at + (at - step) % n] + k[1] * v) * 0.5)
        return [tensor(y, dims)]
    rows = [x[i:i + n] for i in range(0, len(x), n)]
    y = [[a + b for a, b in zip(row[:n // 2], row[n // 2:])] for row in rows]
    return [tensor(sum(y, []), [*dims[:-1], n // 2]), tensor([max(row) for row in y], dims[:-1])]
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "init":
        answer({"operators": [{"domain": "made.up", "op": op, "infers": False} for op in ("Blur", "Fold")]})
    elif m["method"] == "compute":
        answer({"error": "not today"} if "sulking" in sys.argv[0] else
               {"outputs": compute(m) * (2 if "wrong" in sys.argv[0] else 1)})
    else:
        break
END
mscgym run made_up.onnx --inputs made_up.npz -o python.npz --operators ops.py --quiet
[ "$(wc -c <python.npz)" = "$(wc -c <out.npz)" ] && echo "the same size"
cp ops.py wrong.py
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --operators wrong.py --quiet
cp ops.py sulking.py
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --operators sulking.py --quiet
echo 'import sys; sys.exit(3)' >gone.py
try mscgym run made_up.onnx --inputs made_up.npz -o x.npz --operators gone.py --quiet

echo "== compression"
try mscgym quantize made_up.onnx --inputs made_up.npz -o q.onnx --quiet
mscgym quantize made_up.onnx --inputs made_up.npz -o q.onnx --operators ops.so --float 0 --quiet >/dev/null
mscgym graph q.onnx | grep -c 'OPTYPE: msc.external'
mscgym graph q.onnx | grep -A6 'blur <' | grep ATTRS
mkdir in
cp ops.so made_up.onnx made_up.npz in
cat >in/search.json <<'END'
{
  "workspace": "../w", "verbose": "error", "model": "made_up.onnx", "operators": ["./ops.so"],
  "dataset": {"inputs": "made_up.npz", "batch": 4},
  "quantize": {"target": "generic", "gym": [{
    "record": "s.jsonl", "env": {"choices": [{"bits": 8}, {"bits": 4}]},
    "agent": {"type": "random"}, "budget": {"trials": 8}, "parallel": 4}]}
}
END
mscgym search in/search.json --quiet >/dev/null
mscgym show w/s.jsonl --canonical | grep -c '"kind":"trial"'
try mscgym verify w/s.jsonl --sample 2
mscgym verify w/s.jsonl --sample 2 --allow-plugins
# Another file of the plug-in may compute something else.
printf x >>in/ops.so
try mscgym search in/search.json --quiet | sed 's|[^ ]*/w/|w/|g; s/"[0-9a-f]\{32\}"/"HASH"/g'
sed 's|"operators": \["./ops.so"\],||' in/search.json >in/none.json
try mscgym search in/none.json --quiet --restart | sed 's|[^ ]*/in/|in/|g'
sed 's|"./ops.so"|7|' in/search.json >in/bad.json
try mscgym search in/bad.json --quiet | sed 's|[^ ]*/in/|in/|g'
