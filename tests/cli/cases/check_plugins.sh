# `--check`: plug-ins that keep their contract, and programs that each break it in one way.
. "$(dirname "$0")/../lib.sh"
# The real Python program, not a wrapper script that looks for it: it is started many times.
mkdir bin
ln -s "$(python3 -c 'import sys; print(sys.executable)')" bin/python3
PATH=$PWD/bin:$PATH
cp "$HILL_CLIMB" agent.so
cp "$COIN" env.so
cp "$FAULTS" faults.so
mscgym agents --check ./agent.so
mscgym agents --check "python3 -S $EXAMPLES/random_agent.py" --json | jq -c '.[] | [.rule, .kept]'
mscgym envs --check toy
mscgym envs --check ./env.so --json | jq -c '[.[].kept] | all'
tiny net '"bounds": {"size_ratio": {"max": 0.3}}'
mscgym envs --check net.json | cut -c 1-20
mscgym agents --check net.json | cut -c 1-20
ls *.*

cat >agent.py <<'END2'
import json, os, random, sys, time
fault, n = sys.argv[1], 0
for line in sys.stdin:
    message = json.loads(line)
    answer, n = {}, n + 1
    if message["method"] == "init":
        tasks = message["space"]["tasks"]
        seed = os.urandom(8) if fault == "unseeded" else message["seed"]
        draw = random.Random(seed)
    elif message["method"] == "ask":
        most = [len(task["choices"]) for task in tasks]
        points = [[draw.randrange(k) for k in most] for _ in range(message["max"])]
        if fault == "range":
            points[-1][0] = most[0]
        answer = {"proposals": [{"choices": point} for point in points]}
        if fault == "left":
            answer["left"] = 1
    elif message["method"] == "tell":
        if fault == "failed" and message["outcome"]["state"] == "failed":
            sys.exit(5)
    elif message["method"] == "done":
        break
    if fault == "slow" and message["method"] == "ask":
        time.sleep(30)
    if fault == "talks":
        print("hello")
    print(json.dumps(answer), flush=True)
END2
for fault in unseeded range failed left talks; do
    echo "== $fault"
    try mscgym agents --check "python3 -S agent.py $fault" 2>/dev/null | grep -v '^ok'
done
# Commands whose last word looks like a configuration or a library, and file names with spaces.
mscgym agents --check "python3 -S agent.py params.json" --json | jq -c '[.[].kept] | all'
mscgym envs --check "python3 -S $EXAMPLES/../environments/filter_bits.py plugin.so" --json | jq -c '[.[].kept] | all'
cp net.json "my net.json"
cp env.so "my env.so"
mscgym agents --check "my net.json" --json | jq -c '[.[].kept] | all'
mscgym envs --check "./my env.so" --json | jq -c '[.[].kept] | all'
echo "== slow"
mscgym agents --check "python3 -S agent.py slow" --limit 1s --json | jq -c '.[-1].message'
# Plug-ins that cannot be started, or are not named.
try mscgym agents --check ./missing.so
try mscgym agents --check
try mscgym envs --check quantize
MSC_FAULT=crash try mscgym envs --check ./faults.so
try mscgym envs --check toys
