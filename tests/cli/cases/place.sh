# `place`: which runtime computes which part. A script replaces mscgym-runtime: it answers with
# latencies that are made up from the names of models and backends.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" net.onnx
cat >runtime.py <<'END_OF_SCRIPT'
import json, os, re, sys

HOST = {"protocol": 1, "processor": "A chip", "features": [], "threads": 2,
        "runtimes": [{"name": "onnxruntime", "version": "1.2.3"}, {"name": "tvm", "version": "0.9", "slow": True},
                     {"name": "openvino", "missing": "pip install openvino"}],
        "own": {"name": "mscgym", "version": "libmscgym"}}
WHOLE = {"onnxruntime": 130.0, "cpu": 90.0, "tvm": 200.0}


def latency(pieces):
    """Group 1 is slow in onnxruntime, the others in cpu; the cut before group i costs 2 + i."""
    if os.path.basename(pieces[0]["model"]) == "net.onnx":
        return WHOLE[pieces[0]["backend"]] * (1 + 0.02 * pieces[0].get("copy", 0))
    if "piece" in pieces[0]["model"]:
        return WHOLE[pieces[0]["backend"]] if len(pieces) == 1 else float(os.environ.get("MIX", "50"))
    return sum(part["us"] for part in parts(pieces))


def parts(pieces):
    """Each piece in its place."""
    found, before = [], None
    for piece in pieces:
        first, last = map(int, re.findall(r"_(\d+)_(\d+)\.onnx", piece["model"])[0])
        us = 2.0 + first if before not in (None, piece["backend"]) else 0.0
        for group in range(first, last + 1):
            us += (100.0 if group == 1 else 10.0) if piece["backend"] == "onnxruntime" else \
                (12.0 if group == 1 else 26.0)
        before = piece["backend"]
        found.append({"us": us, "error": 0, "bytes": 1000 * (last + 1)})
    return found


def is_left_out(piece):
    name = piece["backend"] + re.findall(r"_\d+_\d+", piece["model"])[0]
    return name in (os.environ.get("LEFT_OUT"), os.environ.get("WRONG")) or \
        piece["backend"] == os.environ.get("REFUSED")


def divided(chain, request, slower):
    """A machine that becomes slower round by round: only ratios within a round can be relied on."""
    ran = [piece for piece in chain["pieces"] if not is_left_out(piece)]
    times, rows = iter(parts(ran)), []
    for piece in chain["pieces"]:
        if is_left_out(piece):
            rows.append({"missing": "no kernel", **({"error": 0.5} if "WRONG" in os.environ else {})})
        else:
            part = next(times)
            rows.append({**part, "us": [part["us"] * factor for factor in slower]})
    assert chain["parts"] == 0.1, chain
    return {"runs": 1, "error": 0, "parts": rows, "us": [latency(ran) * factor for factor in slower]} if ran else \
        {"missing": "no kernel"}


n_requests = 0
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "done":
        break
    answer = HOST
    if request["method"] == "chains":
        for piece in request["values"]:
            assert os.path.isfile(piece["model"]), piece
        answer = {"chains": []}
        n_requests += 1
        slower = [n_requests * (1 + (i - (request["rounds"] - 1) / 2) / 100) for i in range(request["rounds"])]
        for chain in request["chains"]:
            first = chain["pieces"][0]
            is_file = os.path.basename(first["model"]) == "net.onnx"
            is_refused = os.environ.get("REFUSED") == first["backend"] and len(chain["pieces"]) == 1
            is_refused |= os.environ.get("FILE_REFUSED") == first["backend"] and is_file
            is_refused |= os.environ.get("PIECE_REFUSED") == first["backend"] and "/piece0" in first["model"] and \
                len(chain["pieces"]) == 1
            if is_refused or (os.environ.get("ONE_COPY") == first["backend"] and is_file and first.get("copy")):
                answer["chains"].append({"missing": "it is too new"})
                continue
            answer["chains"].append(divided(chain, request, slower) if "parts" in chain else {
                "runs": 1, "error": float(os.environ.get("MIX_ERROR", "0")) if len(chain["pieces"]) > 1 else 0,
                "us": [latency(chain["pieces"]) * factor for factor in slower]})
    print(json.dumps(answer), flush=True)
END_OF_SCRIPT
export MSCGYM_RUNTIME="python3 runtime.py"
echo "== a mix wins"
try mscgym place net.onnx -o placed --threads 1 --rounds 3 --processes 2 --quiet
jq -c '.pieces[] | [.name, .runtime, .device, .joints]' placed/manifest.json
jq -c '.runs[] | [.first, .last, (.us | map(. * 10 | round / 10))]' placed/placement.json | head -n 4
jq -c '.cuts[] | .us |= map(map(. * 10 | round / 10))' placed/placement.json
MSCGYM_RUNTIME= mscgym graph placed/piece0.onnx | head -n 1
echo "== a mix that is slower when it is measured whole, and one within the spread"
MIX=95 try mscgym place net.onnx -o slower --table placed/placement.json --processes 1 --quiet | tail -n 3
MIX=88.5 mscgym place net.onnx -o equal --table placed/placement.json --processes 1 --threads 1 --quiet --json |
    jq -c '[.plan, .result, (.predicted_ratio, .measured_ratio, .ratio, .spread | . * 1000 | round), .wins]'
ls equal
echo "== a mix that computes something else when it runs whole"
MIX_ERROR=0.5 try mscgym place net.onnx -o wrong --table placed/placement.json --processes 1 --quiet | tail -n 5
MIX_ERROR=0.5 mscgym place net.onnx -o wrong --table placed/placement.json --processes 1 --quiet --json |
    jq -c '[.plan, .result, .ratio, .measured_ratio, .wins], (.measured[] | select(.form == "plan"))'
echo "== one backend, and one that refuses the network"
try mscgym place net.onnx -o one --backend cpu --processes 1 --quiet | tail -n 2
REFUSED=onnxruntime try mscgym place net.onnx -o one --quiet --processes 1 | tail -n 11
echo "== a plan of one piece whose backend refuses the network's file, a piece that cannot be delivered, a lost copy"
jq '.runs[].us[0] = 1000' placed/placement.json >slow.json
FILE_REFUSED=cpu try mscgym place net.onnx -o one --table slow.json --processes 1 --quiet | tail -n 3
jq -c '.pieces[] | [.runtime, .device]' one/manifest.json
MIX=95 PIECE_REFUSED=cpu try mscgym place net.onnx -o one --table placed/placement.json --processes 1 --quiet
ONE_COPY=cpu mscgym place net.onnx -o one --table placed/placement.json --processes 1 --quiet --json |
    jq -c '.measured[] | select(.missing)'
echo "== the same again, and pieces that cannot run or compute something else"
mscgym place net.onnx -o again --threads 1 --rounds 3 --processes 1 --quiet >again.txt
cmp again/placement.json placed/placement.json
LEFT_OUT=cpu_1_1 mscgym place net.onnx -o left --rounds 3 --processes 1 --quiet | grep -A 3 "the plan:"
jq -c '.runs[] | select(.first == 1) | [.first, .last, (.us | map(if . then round else . end))]' left/placement.json | head -n 2
LEFT_OUT=cpu_1_1 mscgym place net.onnx -o left --rounds 3 --processes 1 --backend onnxruntime --backend cpu \
    --backend tvm --quiet >left.txt
jq -c '.runs[] | select(.first == 2 and .last == 2) | .us | map(. * 10 | round / 10)' left/placement.json
WRONG=cpu_1_1 mscgym place net.onnx -o left --rounds 3 --processes 1 --threads 1 2>&1 | grep -o "no kernel: its.*" |
    sort -u
mscgym place net.onnx -o joined --rounds 3 --processes 1 --groups 2 --quiet | grep -A 3 "the plan:"
echo "== the environment"
cat >search.json <<'END_OF_CONFIG'
{"verbose": "error", "gym": [{"env": {"type": "placement", "file": "placed/placement.json", "exact": false,
                                      "bounds": {"pieces": {"max": 2}}},
                              "agent": {"type": "grid_search", "mode": "full"}, "budget": {"trials": 500}}]}
END_OF_CONFIG
mscgym search search.json --quiet | head -n 3
mscgym place net.onnx -o two --table placed/placement.json --processes 1 --record msc_workspace/gym_0.jsonl --quiet |
    tail -n 3
sed 's/"exact": false,/"exact": false, "measure": "whole",/; s/{"max": 2}/{"max": 3}/' search.json >whole.json
mscgym search whole.json --restart --quiet | tail -n 4
sed -i 's/"max": 3/"max": 4/' whole.json
MSCGYM_RUNTIME=false try mscgym search whole.json --restart --quiet
jq '.model = "absent.onnx"' placed/placement.json >placed/moved.json
sed 's/placement.json/moved.json/' whole.json >moved.json
try mscgym search moved.json --restart --quiet
echo "== errors"
try mscgym place net.onnx
try mscgym place net.onnx -o x --groups 0
try mscgym place net.onnx -o x --rounds 0
try mscgym place net.onnx -o x --processes 65
try mscgym place net.onnx -o x --backend openvino
try mscgym place net.onnx -o x --backend ncnn
try mscgym place absent.onnx -o x
try mscgym place net.onnx -o x --record msc_workspace/gym_0.jsonl
jq '.runs[0].us[0] = 11' placed/placement.json >other.json
try mscgym place net.onnx -o x --table other.json --record msc_workspace/gym_0.jsonl
jq '.groups[1].name = "nothing"' placed/placement.json >other.json
try mscgym place net.onnx -o x --table other.json
try mscgym place net.onnx -o x --table net.onnx
cp "$FILES/branch.onnx" another.onnx
try mscgym place another.onnx -o x --table placed/placement.json
jq '.model = "../another.onnx"' placed/placement.json >placed/moved.json
try mscgym search moved.json --restart --quiet
jq ".version = 2" placed/placement.json >other.json
try mscgym place net.onnx -o x --table other.json
try mscgym place net.onnx -o x --table placed/placement.json --threads 2
try mscgym place net.onnx -o x --table placed/placement.json --batch 2
try mscgym place net.onnx -o x --table placed/placement.json --backend cpu
try mscgym place net.onnx -o x --backend cpu --backend cpu
# A record whose tasks have more choices than the table has backends, with a valid checksum.
if python3 - <<'END_OF_SCRIPT'; then
import ctypes, ctypes.util, json, sys

name = ctypes.util.find_library("xxhash")
if not name:
    sys.exit(1)


class Hash(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


hash_bytes = ctypes.CDLL(name).XXH3_128bits
hash_bytes.argtypes, hash_bytes.restype = (ctypes.c_char_p, ctypes.c_size_t), Hash
first, *lines = open("msc_workspace/gym_0.jsonl", "rb").read().splitlines(True)
body, rest = first.split(b',"checksum":"')
header = json.loads(body + b"}")
for task in header["space"]["tasks"]:
    task["choices"].append("more")
body = json.dumps(header, separators=(",", ":")).encode()[:-1]
hashed = hash_bytes(body, len(body))
first = body + b',"checksum":"%016x%016x' % (hashed.high, hashed.low) + rest[32:]
open("forged.jsonl", "wb").write(first + b"".join(lines))
END_OF_SCRIPT
    try mscgym place net.onnx -o x --table placed/placement.json --record forged.jsonl |
        grep -v -e "is not a search of this table" -e "exit 2"
fi
MSCGYM_RUNTIME=no/such/program try mscgym place net.onnx -o x
ls x 2>&1
mkdir kept
echo '{}' >kept/placement.json
try mscgym place net.onnx -o kept
cat kept/placement.json
mkdir other own
echo '{}' >other/manifest.json
try mscgym place net.onnx -o other
cp net.onnx own/piece3.onnx
try mscgym place own/piece3.onnx -o own
ls other own
