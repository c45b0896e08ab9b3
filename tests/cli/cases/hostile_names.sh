# Names with terminal control characters, or with characters that reverse the reading direction, are
# printed as escapes in text. JSON output has the full names in ASCII.
. "$(dirname "$0")/../lib.sh"
cp "$FILES"/tiny.onnx "$FILES"/inputs*.npz .
mscgym graph tiny.onnx -o plain.json
hostile() { # hostile NAME EXPRESSIONS: NAME.json is plain.json after these sed expressions
    name=$1
    shift
    sed -E "$@" plain.json >"$name.json"
    cp plain.safetensors "$name.safetensors"
}
hostile names -e '/optype/!s,"relu([:"]),"re\\u001b[2Jlu\1,g' \
    -e '/optype/!s,"flatten([:"]),"flat\\u009b\\u202eten\1,g' \
    -e 's,"fc([:"]),"f\\nwinner: 0\\u007f\1,g' \
    -e 's,"x([:"]),"x\\u001b[31m\1,g' -e 's,"y","\\u001b]0;\\u2066schön\\u0007",g'

mscgym graph names.json
mscgym graph names.json --sites
mscgym graph names.json --placement | sed -n '/^ /s/  */ /gp'
mscgym graph names.json --prototxt | grep 'name\|bottom'

# JSON: only ASCII characters, and the original names.
mscgym graph names.json --json >again.json
mscgym graph names.json --sites --json >sites.json
cat again.json sites.json | sed 's/schön//' | LC_ALL=C tr -d '\n -~' | wc -c
jq -S . names.json | cmp - <(jq -S . again.json) && echo "the same"
jq -c '[.[].joints[0]]' sites.json

# A search: its log, its record and its error messages.
cat >search.json <<'END'
{"workspace": "w", "verbose": "debug", "model": "names.json", "dataset": {"inputs": "inputs.npz"},
 "quantize": {"target": "generic", "gym": [{"record": "r.jsonl", "budget": {"trials": 2}}]}}
END
mscgym search search.json --quiet >/dev/null
mscgym show w/r.jsonl --best | sed 's/:.*//'
grep -c 'x.x1b.31m' w/MSC_LOG
LC_ALL=C tr -d '\n -~' <w/MSC_LOG | wc -c
hostile input -e 's,"x([:"]),"x\\u001b[2J\\u202e\1,g'
sed 's/names/input/; s/inputs.npz/inputs_shape.npz/' search.json >other.json
try mscgym search other.json --quiet
try mscgym search other.json --quiet --entry $'a\u009bb\e[2J'
