# Clusters with environments that are programs or libraries, and with metrics from commands.
. "$(dirname "$0")/../lib.sh"
program=$(command -v mscgym)
same() {
    mscgym show "$1" --canonical >own.txt && mscgym show alone.jsonl --canonical >alone.txt &&
        cmp own.txt alone.txt && echo "$2: the same"
}
mkdir -p bin package/mscgym_ray in nodes/good nodes/other nodes/none
ln -s "$(python3 -c 'import sys; print(sys.executable)')" bin/python3
export PATH=$PWD/bin:$PATH PYTHONPATH=$PWD/package:$FILES/cluster PYTHONDONTWRITEBYTECODE=1
echo 'from workers_here import Bridge; Bridge().run()' >package/mscgym_ray/__main__.py
ray() {
    mscgym search "$1" --restart --quiet --cluster ray:auto:2 --worker-program "$program" "${@:2}" 2>&1 |
        sed 's|/[^ :]*/||g; s/; worker [^:]* is refused[^:]*/; worker … is refused/; s/"[0-9a-f]*"/…/g; /^mscgym\|^ended/!d'
}
# The program of the metric `command` runs in the coordinator only.
tiny m '"command": ["./bytes.sh", "{model}"], "objectives": ["distill_loss", "command"]'
printf '#!/bin/sh\nwc -c <"$1"\necho . >>called.txt\n' >bytes.sh
chmod +x bytes.sh
mscgym search m.json --quiet >/dev/null
cp m/tiny.jsonl alone.jsonl
n=$(wc -l <called.txt)
rm called.txt
mscgym search m.json --restart --quiet --cluster local:2 >/dev/null
same m/tiny.jsonl 'a command'
[ "$(wc -l <called.txt)" = "$n" ] || echo 'workers call it, too'
# An environment that is a program. Workers on other machines must find the same file there.
cat >in/env.py <<'END'
import json, sys
widths = [8, 6, 4]
def answer(message):
    print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "init":
        answer({"tasks": [{"name": f"t{i}", "choices": [str(w) for w in widths]} for i in range(4)],
                "metrics": [{"name": "distill_loss"}]})
    elif message["method"] == "done":
        break
    for i, trial in enumerate(message.get("trials", [])):
        loss = sum(c * (t + 1) + (trial["choices"][t - 1] * c) / 4 for t, c in enumerate(trial["choices"]))
        answer({"trial": i, "metrics": {"distill_loss": loss}})
END
cat >in/program.json <<'END'
{"workspace": "../out", "verbose": "error",
 "gym": [{"record": "program.jsonl", "env": {"type": "process", "command": ["python3", "-S", "env.py"]},
          "agent": {"type": "evolutionary", "population": 8}, "budget": {"trials": 40}, "parallel": 8}]}
END
mscgym search in/program.json --quiet >/dev/null
cp out/program.jsonl alone.jsonl
mscgym search in/program.json --restart --quiet --cluster local:2 >/dev/null
same out/program.jsonl 'a program'
cp in/env.py nodes/good/
sed 's/8, 6, 4/8, 6, 5/' in/env.py >nodes/other/env.py
ray in/program.json
ray in/program.json --node-path nodes/good
ray in/program.json --node-path "$PWD/nodes/good"
same out/program.jsonl 'a program of the nodes'
ray in/program.json --node-path "$PWD/nodes/other"
ray in/program.json --node-path "$PWD/nodes/none" | cut -c1-120
# A measured metric differs from run to run; workers are not refused for that.
sed 's/\({"name": "distill_loss"}\)/\1, {"name": "speed", "measured": True}/; s/"distill_loss": loss/&, "speed": time.perf_counter()/
    s/import json/&, time/' in/env.py >in/timed.py
sed 's/env.py/timed.py/; s/program/timed/' in/program.json >in/timed.json
loss() { mscgym show "$1" --canonical | grep -o '"choices":[^]]*\|"distill_loss":[0-9.e+-]*' | sed 1d; }
mscgym search in/timed.json --quiet >/dev/null
loss out/timed.jsonl >alone.txt
mscgym search in/timed.json --restart --quiet --cluster local:2 >/dev/null
loss out/timed.jsonl >own.txt
cmp alone.txt own.txt && [ "$(wc -l <own.txt)" -ge 80 ] && echo 'measured: the same'
# An environment that is a library.
sed 's|{"type": "process".*},$|{"type": "./coin.so"},|; s/program/library/' in/program.json >in/library.json
cp "$COIN" in/coin.so
mscgym search in/library.json --quiet >/dev/null
cp out/library.jsonl alone.jsonl
mscgym search in/library.json --restart --quiet --cluster local:2 >/dev/null
same out/library.jsonl 'a library'
ray in/library.json
cp "$COIN" nodes/good/coin.so
ray in/library.json --node-path "$PWD/nodes/good"
same out/library.jsonl 'a library of the nodes'
cp "$COIN" nodes/other/coin.so
echo >>nodes/other/coin.so
ray in/library.json --node-path "$PWD/nodes/other"
ray in/library.json --node-path "$PWD/nodes/none" | cut -c1-109
# Resuming a record needs --allow-plugins, as without workers.
try mscgym resume out/library.jsonl --cluster local:2 2>&1 | grep -c allow-plugins
