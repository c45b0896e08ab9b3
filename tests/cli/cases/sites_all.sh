# Searches over all sites that a target requantises: strategy, record and exported model agree.
. "$(dirname "$0")/../lib.sh"
tiny all '"target": "onnxruntime", "sites": "all"'
mscgym search all.json | grep '^trials\|^model'
mscgym verify all/tiny.jsonl --trials 3,5 && echo verified
jq -c '[.target, .sites, ([.edits[].site] | length)]' all/msc_quantize.json

# A record that was cut continues to the same result.
cp -r all cut
head -n 8 all/tiny.jsonl >cut/tiny.jsonl
mscgym resume cut/tiny.jsonl --quiet >/dev/null
cmp <(mscgym show all/tiny.jsonl --canonical | tail -n +2) \
    <(mscgym show cut/tiny.jsonl --canonical | tail -n +2) && echo "resumed equal"

# The exported model's QDQ pairs give the outputs of the strategy, up to rounding in float sums.
numbers() {
    od -An -v -t f4 -w4 -j 128 "$1"
}
mscgym run "$FILES/tiny.onnx" --strategy all/msc_quantize.json --input "x=$FILES/x.npy" \
    --output s --quiet >/dev/null
mscgym run all/tiny.onnx --input "x=$FILES/x.npy" --output m --quiet >/dev/null
paste <(numbers s/y.npy) <(numbers m/y.npy) |
    awk '{ d = $1 - $2; most = d > most ? d : -d > most ? -d : most } END { print (NR > 0), (most < 1e-5) }'

# Other `sites` are another search.
tiny inputs '"target": "onnxruntime", "sites": "inputs"'
sed -i 's/"workspace": "inputs"/"workspace": "all"/' inputs.json
try mscgym search inputs.json
tiny wrong '"sites": "all"'
try mscgym search wrong.json
tiny site '"target": "onnxruntime", "sites": "all", "group": "site"'
try mscgym search site.json

# By joints: an output that the target quantises is a task of its own.
tiny joints '"target": "tensorrt", "group": "joint"'
sed -i 's/{"bits": 4}/{"bits": 8, "scale": 0.5}/' joints.json
mscgym search joints.json | grep '^trials\|^model'
mscgym verify joints/tiny.jsonl
jq -c 'select(.kind == "header") | [.space.tasks[].name]' joints/tiny.jsonl
jq -c '[.edits[].site]' joints/msc_quantize.json

# The defaults of target and sites follow the runtime, but a record keeps its own.
tiny old
sed -i 's/"target": "generic"/"target": "onnx"/' old.json
mscgym search old.json | grep '^trials'
sed -i 's/"target": "onnx"/"target": "generic"/' old.json
mscgym search old.json | grep '^trials'
sed -i 's/"target": "generic", //' old.json
mscgym search old.json | grep '^trials'
tiny new
sed -i 's/"target": "generic", //' new.json
mscgym search new.json >/dev/null
head -n 1 new/tiny.jsonl | jq -c '.env.params | [.target, .sites]' | default_target
