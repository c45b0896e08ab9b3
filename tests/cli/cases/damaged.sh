# A damaged output of a stage is made again and its remains are kept under another name. A file that
# the user put there is not overwritten.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits
cp "$digits/digits.onnx" "$digits/calibration.npz" .

# config NAME STAGES: writes NAME.json with these stages and searches for channels and for bits.
config() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "warning", "model": "digits.onnx",
  "dataset": {"inputs": "calibration.npz", "samples": 32}, $2
  "prune": {"runtime": false, "gym": [{"env": {"round_to": 1, "bounds": {"macs_ratio": {"max": 0.7}}},
    "agent": {"type": "random"}, "budget": {"trials": 2}, "parallel": 1}]},
  "quantize": {"target": "generic", "runtime": false, "gym": [{"env": {"choices": [{"bits": 4}]},
    "agent": {"type": "random"}, "budget": {"trials": 2}, "parallel": 1, "distill": true}]}
}
END_OF_CONFIG
}

# damage FILE HOW: damages a file in one of these ways.
damage() {
    cp "$1" whole
    case $2 in
    byte) jq -c . whole | sed 's/"schema"/"sc\x01ema"/' >"$1" ;;
    half) head -c $(($(stat -c %s whole) / 2)) whole >"$1" ;;
    empty) : >"$1" ;;
    binary) head -c 2000 digits.onnx >"$1" ;;
    version) sed 's/"mscgym.strategy.1"/"mscgym.strategy.7"/' whole >"$1" ;;
    text) echo notes >"$1" ;;
    esac
}

# again CONFIG FILE HOW: damages FILE, runs the configuration, and compares all files with the originals.
again() {
    echo "-- $2, $3"
    rm -rf work && cp -r $1 work && sed 's/"workspace": "[a-z]*"/"workspace": "work"/' $1.json >work.json
    damage work/$2 $3
    cp work/$2 left
    mscgym search work.json >/dev/null 2>err
    echo "exit $?"
    cat err
    for file in $(cd $1 && ls | grep -v 'stages\|MSC_LOG\|jsonl$'); do
        cmp $1/$file work/$file
    done
    cmp left work/$2.1 && echo "kept"
    mscgym search work.json 2>&1 >/dev/null
}

config a '"parse": {"graph": "graph.json"}, "track": {"samples": 4}, "export": {"model": "small.onnx"},'
config b ""
mscgym search a.json >/dev/null && mscgym search b.json >/dev/null || exit 1

echo "== with stages"
for how in byte half empty binary version text; do
    again a msc_quantize.json $how
done
again a msc_prune.json half
again a graph.json half
again a small.onnx half
again a MSC_LOG binary

echo "== without"
again b msc_quantize.json byte
again b msc_prune.json empty
again b digits.onnx half
again b MSC_LOG binary

echo "== gone, or changed by somebody"
rm a/msc_prune.json
mscgym search a.json >/dev/null && cmp a/msc_prune.json b/msc_prune.json && echo "there again"
jq '.edits[0].choice = "mine"' a/msc_quantize.json >mine && cp mine a/msc_quantize.json
mscgym search a.json 2>&1 >/dev/null
cmp mine a/msc_quantize.json.1 && cmp a/msc_quantize.json b/msc_quantize.json && echo "made again"

echo "== of the usual plan"
config c ""
jq 'del(.prune, .quantize.gym)' c.json >d.json && mv d.json c.json
mscgym search c.json >/dev/null
again c msc_quantize.json half

echo "== what is no output"
rm -rf work && mkdir work
sed 's/"workspace": "b"/"workspace": "work"/' b.json >work.json
echo notes >work/msc_prune.json
try mscgym search work.json
ls work
sed 's/"msc_[a-z]*.json"//; s/"runtime": false, "gym"/"strategy_file": "notes.txt", &/' b.json >work.json
cp -r b c2 && sed -i 's/"workspace": "b"/"workspace": "c2"/' work.json
echo notes >c2/notes.txt
try mscgym search work.json
ls c2 | grep notes
echo "-- of a section without searches"
rm -rf work && cp -r b work
jq '.workspace = "work" | del(.prune, .quantize.gym)' b.json >work.json
damage work/msc_quantize.json half
try mscgym search work.json
ls work | grep msc_quantize
