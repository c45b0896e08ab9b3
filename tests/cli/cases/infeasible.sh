# A bound that no plan can meet is refused at once. If no trial met a bound, the search says so and
# exports nothing.
. "$(dirname "$0")/../lib.sh"
toy a 8 '"bounds": {"size_bytes": {"max": 3}}'
try mscgym search a.json
ls
toy b 8 '"bounds": {"distill_loss": {"max": -1}}'
try mscgym search b.json | grep -v '^uniform\|^winner\|^ '
tiny c '"bounds": {"distill_loss": {"max": 1e-12}}'
try mscgym search c.json | grep -v '^uniform\|^winner\|^ \|^uncompressed'
ls c
mscgym export c/tiny.jsonl -o nearest.onnx 2>&1 | sed 's/trial [0-9]*/trial N/'
ls nearest.onnx
sed 's|"workspace": "c"|"workspace": "c d"|' c.json >cd.json
mscgym search cd.json 2>&1 | grep -o 'mscgym export.*'
toy d 8 '"bounds": {"size": {"max": 3}}'
try mscgym search d.json
toy e 8 '"objectives": ["loss"]'
try mscgym search e.json
