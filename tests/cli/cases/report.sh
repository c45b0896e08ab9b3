# A report is one file that says what to deploy; hostile names are text in it; nothing of it comes from
# elsewhere.
. "$(dirname "$0")/../lib.sh"
toy a 40 '"delay_us": 500' # or it has no time to tell of
mscgym search a.json >/dev/null
mscgym report a/toy.jsonl
page() { # without the document and what all pages hold
    sed '/<script/,/<\/script>/d; /<style>/,/<\/style>/d' "$1"
}
page a/toy.html | sed -n '/class="part box/,/<\/section>/p' | sed 's/<[^>]*>//g' | grep -v '^$'
page a/toy.html | grep -c '<section'
# Nothing is loaded, and what may run is named by its hash.
page a/toy.html | grep -oE '(src|href)="[^#"]*"' | sort -u
grep -o "default-src 'none'" a/toy.html
grep -oE "script-src [^;]*" a/toy.html | sed -E "s/'sha256-[^']*'/HASH/g; s/(HASH ?)+/HASHES/"
grep -c '<article' a/toy.html

# Its document, and the same by --json.
sed -n 's/.*id="data">\(.*\)<\/script>/\1/p' a/toy.html >document.json
mscgym report a/toy.jsonl --json | jq -S . >again.json
jq -S . document.json | cmp - again.json && echo "the same"
jq -c '[.records[0].verdict.kind, (.records[0].trials.points.id | length)]' document.json

# Several, side by side.
toy b 60
sed -i 's/"seed": 3/"seed": 4/' b.json
mscgym search b.json >/dev/null
mscgym report a/toy.jsonl b/toy.jsonl -o both.html
page both.html | grep -c '<article'
page both.html | sed -n '/<h3>Configurations/,/<\/table>/p' | sed 's/<[^>]*>/ /g' | tr -s ' ' | grep 'seed'

# Names that hold markup are shown as they are.
cp "$FILES"/tiny.onnx "$FILES"/inputs*.npz .
mscgym graph tiny.onnx -o plain.json
sed -E '/optype/!s,"flatten([:"]),"<script>alert(1)</script>\1,g; s,"fc([:"]),"\x27\\"><img src=x onerror=alert(1)>\1,g' plain.json >bad.json
cp plain.safetensors bad.safetensors
cat >search.json <<'END'
{"workspace": "w", "verbose": "error", "model": "bad.json", "dataset": {"inputs": "inputs.npz"},
 "quantize": {"target": "generic", "gym": [{"record": "<b>r.jsonl", "budget": {"trials": 2}}]}}
END
mscgym search search.json --quiet >/dev/null
mscgym report "w/<b>r.jsonl" -o bad.html
grep -cE '<script>alert|<img|<b>r' bad.html
page bad.html | grep -oE '&lt;script&gt;alert\(1\)&lt;/script&gt;:0' | sort -u
jq -c '.records[0].graph.joints | map(.name)' <(sed -n 's/.*id="data">\(.*\)<\/script>/\1/p' bad.html)

# What cannot be shown.
try mscgym report missing.jsonl
try mscgym report
try mscgym report tiny.onnx
