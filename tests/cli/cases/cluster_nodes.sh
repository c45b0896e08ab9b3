# Workers on machines that lack the files of the search: the files are sent to them.
. "$(dirname "$0")/../lib.sh"
same() {
    mscgym show "$1" --canonical >own.txt && mscgym show alone.jsonl --canonical >alone.txt &&
        cmp own.txt alone.txt && echo "$2: the same"
}
# An agent from a library runs in the coordinator; workers do not need it.
toy a 30
sed -i 's|"agent": .*|"agent": {"type": "library", "path": "'"$HILL_CLIMB"'"},|' a.json
mscgym search a.json --quiet >/dev/null
cp a/toy.jsonl alone.jsonl
mscgym search a.json --restart --quiet --cluster local:2 >/dev/null
same a/toy.jsonl 'an agent from a library'
# Replaces the Python package for Ray. Its worker sees none of the search's files at their paths.
# "away" stores the sent files as a node does, "bare" without the model, "other" with another model.
mkdir -p package/mscgym_ray
cp "$EXAMPLES/../../python/mscgym_ray/store.py" package/mscgym_ray/
cat >package/mscgym_ray/__main__.py <<'END_OF_PROGRAM'
import json, os, subprocess, sys
from mscgym_ray import store
kind = sys.argv[1].split(":")[0]
store.is_here = lambda file: False
os.environ["TMPDIR"] = os.getcwd()
start = json.loads(input())["start"]
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
worker = subprocess.Popen(start["argv"], **pipes)
def say(**event):
    print(json.dumps(event), flush=True)
say(up={"w": 0, "node": kind})
files = []
while True:
    text = sys.stdin.readline()
    if not text:
        sys.exit()
    request = json.loads(text)
    if "drop" in request:
        worker.kill()
        say(error="that was the only worker")
        sys.exit()
    if "file" in request:
        files.append(store.look_at(**request["file"]))
        continue
    line = json.loads(request["send"]["line"])
    if line["method"] == "init":
        with open("named.txt", "w") as named:
            print(*(os.path.basename(f.path) + " once" * f.first_line for f in files), sep="\n", file=named)
        root = store.lay_out(files)
        for file in files:
            place = root + file.path
            assert open(place, "rb").read() == open(file.path, "rb").read() or file.first_line
            if kind == "bare" and place.endswith("tiny.onnx"):
                os.unlink(place)
            if kind == "other" and place.endswith("tiny.onnx"):
                os.unlink(place)
                subprocess.run(["cp", os.path.dirname(file.path) + "/tiny_doubled.onnx", place], check=True)
        line["record"] = root + line["record"]
    worker.stdin.write(json.dumps(line, separators=(",", ":")) + "\n")
    # Passes on answers until all requested parts are answered.
    left = len(line.get("parts", [1]))
    while left > 0:
        answer = worker.stdout.readline().rstrip("\n")
        left -= "beat" not in answer
        say(line={"w": 0, "line": answer})
END_OF_PROGRAM
if command -v python3 >/dev/null; then
    export PYTHONPATH=$PWD/package PYTHONDONTWRITEBYTECODE=1
    program=$(command -v mscgym)
    tiny d
    mscgym search d.json --quiet >/dev/null
    cp d/tiny.jsonl alone.jsonl
    mscgym search d.json --restart --quiet --cluster ray:away:1 --worker-program "$program" >/dev/null
    same d/tiny.jsonl away
    cat named.txt
    for kind in bare other; do
        try mscgym search d.json --restart --quiet --cluster ray:$kind:1 --worker-program "$program" |
            sed 's|worker [^:]* is|worker … is|; s|/[^ ]*/||g; s/"[0-9a-f]*"/…/g'
    done
fi
