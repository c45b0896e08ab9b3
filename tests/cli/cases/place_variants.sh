# `place` with a variant of the network: which piece comes from which file. A script replaces
# mscgym-runtime: it answers with latencies that are made up from the names of models. Losses are
# computed.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" net.onnx
cp "$FILES/inputs.npz" .
mscgym quantize net.onnx --inputs inputs.npz -o small.onnx --effort fast --float 0 --quiet >/dev/null
cat >runtime.py <<'END_OF_SCRIPT'
import json, os, re, sys

HOST = {"protocol": 1, "processor": "A chip", "features": [], "threads": 2, "runtimes": [],
        "own": {"name": "mscgym", "version": "libmscgym"}}


def part(piece):
    """Bytes are fast in the first group, floats in the others. The machine becomes slower."""
    variant, first, last = re.findall(r"(\d*)_(\d+)_(\d+)\.onnx", piece["model"])[0]
    later = float(os.environ.get("LATER", "60"))
    groups = range(int(first), int(last) + 1)
    return n_requests * sum((10.0 if group == 0 else later) if variant else (80.0 if group == 0 else 20.0)
                            for group in groups for _ in range(4 - n_groups if group == n_groups - 1 else 1))


def error(piece):
    """The variant differs much from the network, and the loss decides about it; floats must not."""
    is_network = re.search(r"[a-z]_0_0\.onnx", piece["model"])
    return float(os.environ.get("WRONG", "0")) if is_network else 0.0 if re.search("[a-z]_", piece["model"]) else 0.2


def whole(pieces):
    name = os.path.basename(pieces[0]["model"])
    return 50.0 if len(pieces) > 1 else 90.0 if name == "small.onnx" else 100.0


n_requests = 0
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "done":
        break
    answer = HOST
    if request["method"] == "chains":
        answer = {"chains": []}
        n_requests, n_groups = n_requests + 1, len(request["values"])  # of three, some may be joined
        for chain in request["chains"]:
            if "parts" in chain:
                us = [part(piece) for piece in chain["pieces"]]
                answer["chains"].append({"runs": 1, "error": 0, "us": [sum(us)] * request["rounds"], "parts": [
                    {"us": [time] * request["rounds"], "bytes": 64, "error": error(piece)}
                    for time, piece in zip(us, chain["pieces"])]})
            elif re.search(r"_\d+_\d+\.onnx", chain["pieces"][0]["model"]):
                us = sum(part(piece) for piece in chain["pieces"])
                answer["chains"].append({"runs": 1, "error": 0, "us": [us] * request["rounds"]})
            else:
                answer["chains"].append({"runs": 1, "error": 0, "us": [whole(chain["pieces"])] * request["rounds"]})
    print(json.dumps(answer), flush=True)
END_OF_SCRIPT
export MSCGYM_RUNTIME="python3 runtime.py"
set -- --threads 1 --rounds 3 --processes 1 --quiet
hide() { sed -E 's/[0-9.]+e-[0-9]+$|0\.0[0-9]+$/(loss)/; s/backends: [0-9.e-]+/backends: (loss)/'; }
echo "== without a bound"
mscgym place net.onnx --variant small.onnx -o placed --backend cpu --input inputs.npz "$@" | hide
jq -c '.pieces[] | [.name, .runtime, .device, .inputs[0].name, .outputs[0].name, .inputs[0].dtype]' placed/manifest.json
jq -c '[.variants[].model], [.backends[] | [.name, .variant]], (.losses | length)' placed/placement.json
echo "== the pieces are those of the files"
for piece in 0 1; do
    mscgym graph "placed/piece$piece.onnx" | grep OPTYPE
done
mscgym run placed/manifest.json --inputs inputs.npz -o out.npz --quiet && ls out.npz
echo "== bounds: above the loss of the mix, and below it"
loss=$(jq '[.losses[] | select(.variants | unique | length > 1)][0].loss' placed/placement.json)
mscgym place net.onnx --table placed/placement.json -o wide --input inputs.npz --loss-max "$(jq -n "$loss * 2")" --json \
    "$@" >wide.json
jq -c --argjson loss "$loss" '.plan, .result, .wins, .loss == $loss, .variant_losses[0],
    (.delivered_loss - $loss | fabs < 1e-9)' wide.json
mscgym place net.onnx --table placed/placement.json -o narrow --input inputs.npz --loss-max "$(jq -n "$loss / 2")" \
    "$@" | tail -n 3 | hide
jq 'del(.losses, .samples)' placed/placement.json >placed/none.json
mscgym place net.onnx --table placed/none.json -o narrow --input inputs.npz --loss-max "$(jq -n "$loss / 2")" \
    --losses 1 "$@" | grep losses
echo "== latencies relative to the fastest of all networks, also after groups are joined"
LATER=15 mscgym place net.onnx --variant small.onnx -o joined --backend cpu --groups 2 "$@" >joined.txt
jq -c '.runs[] | [.first, .last, .us]' joined/placement.json
echo "== the network itself must compute what it should"
WRONG=0.2 mscgym place net.onnx --variant small.onnx -o wrong --backend cpu "$@" 2>&1 | grep -A 3 "the plan:"
jq -c '[.runs[] | select(.last == 0).us]' wrong/placement.json
echo "== the environment"
cat >search.json <<'END_OF_CONFIG'
{"verbose": "error", "gym": [{"env": {"type": "placement", "file": "placed/placement.json"},
                              "agent": {"type": "grid_search", "mode": "full"}, "budget": {"trials": 100}}]}
END_OF_CONFIG
mscgym search search.json --quiet | head -n 2
try mscgym place net.onnx --table placed/placement.json -o narrow --input inputs.npz --loss-max 0 \
    --record msc_workspace/gym_0.jsonl "$@" | sed -E 's/is [0-9.e-]+,/is (loss),/'
echo "== errors"
try mscgym place net.onnx --variant small.onnx -o x --backend cpu --loss-max 1 "$@"
try mscgym place net.onnx --variant small.onnx -o x --backend cpu --loss-max -1 --input inputs.npz "$@"
try mscgym place net.onnx --variant small.onnx -o x --backend cpu --losses 3 --input inputs.npz "$@"
try mscgym place net.onnx --variant small.onnx -o x --backend cpu --loss-max 1 --groups 18 --input inputs.npz "$@"
try mscgym place net.onnx --variant absent.onnx -o x --backend cpu "$@"
cp "$FILES/branch.onnx" .
try mscgym place net.onnx --variant branch.onnx -o x --backend cpu "$@"
try mscgym place net.onnx --table placed/placement.json --variant small.onnx -o x "$@"
try mscgym place net.onnx --variant net.onnx -o x --backend cpu "$@"
try mscgym place net.onnx --variant small.onnx --variant ./small.onnx -o x --backend cpu "$@"
mkdir own
cp small.onnx own/piece3.onnx
try mscgym place net.onnx --variant own/piece3.onnx -o own --backend cpu "$@"
ls own
cp net.onnx small.onnx
try mscgym place net.onnx --table placed/placement.json -o x "$@"
