# A report is one file that says what to deploy. Names are escaped in it, and it loads nothing.
. "$(dirname "$0")/../lib.sh"
toy a 40 '"delay_us": 500' # long enough for a chart over time
mscgym search a.json >/dev/null
mscgym report a/toy.jsonl
page() { # the page without its data, scripts and styles
    sed '/<script/,/<\/script>/d; /<style>/,/<\/style>/d' "$1"
}
page a/toy.html | sed -n '/class="part box/,/<\/section>/p' | sed 's/<[^>]*>//g' | grep -v '^$'
page a/toy.html | grep -c '<section'
# Nothing is loaded, and the policy allows only scripts with known hashes.
page a/toy.html | grep -oE '(src|href)="[^#"]*"' | sort -u
grep -o "default-src 'none'" a/toy.html
grep -oE "script-src [^;]*" a/toy.html | sed -E "s/'sha256-[^']*'/HASH/g; s/(HASH ?)+/HASHES/"
grep -c '<article' a/toy.html

# The data in the page equals the output of --json.
sed -n 's/.*id="data">\(.*\)<\/script>/\1/p' a/toy.html >document.json
mscgym report a/toy.jsonl --json | jq -S . >again.json
jq -S . document.json | cmp - again.json && echo "the same"
jq -c '[.records[0].verdict.kind, (.records[0].trials.points.id | length)]' document.json

# Several records in one page.
toy b 60
sed -i 's/"seed": 3/"seed": 4/' b.json
mscgym search b.json >/dev/null
mscgym report a/toy.jsonl b/toy.jsonl -o both.html
page both.html | grep -c '<article'
page both.html | sed -n '/<h3>Configurations/,/<\/table>/p' | sed 's/<[^>]*>/ /g' | tr -s ' ' | grep 'seed'

# Markup in names is shown as text.
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

# Files that cannot be shown.
try mscgym report missing.jsonl
try mscgym report
try mscgym report tiny.onnx
