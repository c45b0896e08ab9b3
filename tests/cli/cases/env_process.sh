# A search in an environment that is a program: continued, verified, and refused after the program
# has changed. Also a program that is killed, and programs that break the protocol.
. "$(dirname "$0")/../lib.sh"
mkdir bin in
ln -s "$(python3 -c 'import sys; print(sys.executable)')" bin/python3
PATH=$PWD/bin:$PATH
cat >in/env.py <<'END'
import json, os, signal, sys
widths = [8, 6, 4]
def answer(message):
    print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    fault = message.get("params", {}).get("fault", "") if message["method"] == "init" else fault
    if message["method"] == "init":
        answer({"tasks": [{"name": f"t{i}", "choices": [str(w) for w in widths]} for i in range(4)],
                "metrics": [{"name": "distill_loss"}],
                "costs": [{"name": "size", "unit": "bits", "alone": [widths] * (3 if fault == "space" else 4)}]})
    elif message["method"] == "done":
        break
    for i, trial in enumerate(message.get("trials", [])):
        choices = trial["choices"]
        if fault == "killed" and choices == [1, 1, 1, 1]:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "once" and not os.path.exists("killed"):
            open("killed", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        loss = sum(c * (t + 1) + (choices[t - 1] * c) / 4 for t, c in enumerate(choices))
        metrics = {"distill_loss": loss, "speed": 1} if fault == "metric" else {"distill_loss": loss}
        if fault == "talks":
            print("trial", i)
        if choices[0] == 2 and choices[3] == 2:
            answer({"trial": i, "state": "failed", "reason": "the widths do not fit"})
        else:
            answer({"trial": i, "metrics": metrics})
END
# search NAME TRIALS FAULT: writes a configuration whose program has this fault.
search() {
    cat >in/$1.json <<END
{"workspace": "../out", "verbose": "error",
 "gym": [{"record": "$1.jsonl",
          "env": {"type": "process", "command": ["python3", "-S", "env.py"],
                  "params": {"fault": "$3"}, "bounds": {"size": {"max": 26}}},
          "agent": {"type": "evolutionary", "population": 8},
          "budget": {"trials": $2}, "parallel": 8, "seed": 1}]}
END
}
search whole 40 ""
mscgym search in/whole.json --quiet
mscgym verify out/whole.jsonl --allow-plugins
search part 10 ""
mscgym search in/part.json --quiet | sed -n 's/^trials: //p'
(cd out && mscgym resume part.jsonl --trials 40 --quiet --allow-plugins) | sed -n 's/^trials: //p'
lines() { mscgym show "out/$1.jsonl" --canonical | grep '"kind":"trial"'; }
diff <(lines whole) <(lines part) && echo "the same"
lines whole | grep -o '"state":"failed".*"reason":"[^"]*"' | sort -u
head -n 1 out/whole.jsonl | jq -c '.env | [.type, (.program | length), (.answer | length)]'
echo "== killed once"
search once 40 once
mscgym search in/once.json --quiet 2>&1 | sed -n 's/^trials: //p'
diff <(lines whole) <(lines once) && echo "the same"
echo "== ended by one point"
search killed 40 killed
mscgym search in/killed.json --quiet 2>&1 | sed -n 's/^trials: //p'
lines killed | grep -o '"choices":\[1,1,1,1\].*"state":"failed".*"reason":"[^,]*"' | head -n 1
echo "== nonsense"
for fault in space metric talks; do
    search $fault 40 $fault
    try mscgym search in/$fault.json --quiet
done
echo "== checks"
(cd in && mscgym envs --check "python3 -S env.py" | cut -c 1-20)
mscgym envs --check in/talks.json | sed -n 2p
mscgym config --show in/whole.json --allow-plugins | jq -c '.gym[0].env'
echo "== another program is another search"
sed -i 's/ \/ 4/ \/ 8/' in/env.py
try mscgym search in/whole.json --quiet
try mscgym resume out/whole.jsonl --quiet
