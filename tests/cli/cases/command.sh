# The metric `command`: a program prints a number for the model or the outputs of each trial.
. "$(dirname "$0")/../lib.sh"
cat >bytes.sh <<'END'
#!/bin/sh
echo "$(basename "$1")"
wc -c <"$1"
END
chmod +x bytes.sh
# The program counts bytes of the model file, like the metric file_bytes, so both must be equal.
tiny a '"command": ["./bytes.sh", "{model}"], "objectives": ["command"],
        "bounds": {"distill_loss": {"max": 0.01}, "file_bytes": {"max": 1e6}}'
mkdir temporary
TMPDIR=$PWD/temporary mscgym search a.json >result.txt
ls temporary # temporary models are deleted
grep '^trials\|^ *command' result.txt | sed 's/   */  /g' | sed 's/[0-9][0-9][0-9][0-9]*/N/g'
jq -c 'select(.kind == "trial") | .metrics | .command == .file_bytes' a/tiny.jsonl | sort | uniq -c
head -n 1 a/tiny.jsonl | jq -c '.space.metrics[] | select(.measured) | [.name, .maximised, .exact]'
head -n 1 a/tiny.jsonl | jq -c '.config.quantize.gym[0].env.command'
try mscgym verify a/tiny.jsonl
try mscgym verify a/tiny.jsonl --allow-plugins
mscgym search a.json | cmp - result.txt && echo "nothing is left to do"

echo "- what differs from run to run"
cat >clock.sh <<'END'
#!/bin/sh
n=$(cat n.txt 2>/dev/null || echo 0)
echo $((n + 1)) >n.txt
echo $n
END
chmod +x clock.sh
tiny c '"command": {"argv": ["./clock.sh", "{model}"], "maximise": true}, "objectives": ["command"]'
mscgym search c.json --quiet | grep '^trials\|winner' | sed 's/   */  /g'
head -n 1 c/tiny.jsonl | jq -c '.objectives'
try mscgym verify c/tiny.jsonl --allow-plugins
rm n.txt # the count of clock.sh starts again
mscgym resume c/tiny.jsonl --trials 14 --allow-plugins --quiet | grep '^trials'

echo "- the outputs"
cat >first.py <<'END'
#!/usr/bin/env python3
"""Prints the shape and the first number of the array in an .npz, without numpy."""
import struct
import sys
import zipfile
with zipfile.ZipFile(sys.argv[1]) as file:
    name, = file.namelist()
    data = file.read(name)
end = 10 + struct.unpack("<H", data[8:10])[0]
print(name, eval(data[10:end])["shape"])
print(struct.unpack("<f", data[end:end + 4])[0])
END
chmod +x first.py
tiny o '"command": ["./first.py", "{outputs}"], "objectives": ["distill_loss"],
        "bounds": {"command": {"max": 100}}'
mscgym search o.json --quiet >/dev/null
# Compares with the first output of `run` with the same strategy.
mscgym run "$FILES/tiny.onnx" --strategy o/msc_quantize.json --input "x=$FILES/x.npy" --output s --quiet >/dev/null
jq -s -r 'map(select(.kind == "trial")) | min_by(.metrics.distill_loss) | .metrics.command' o/tiny.jsonl >said
od -An -t f4 -j 128 -N 4 s/y.npy | paste - said | awk '{ d = $1 - $2; print (d < 1e-5 && d > -1e-5) }'

echo "- what a program does wrong"
cat >bad.sh <<'END'
#!/bin/sh
n=$(cat n.txt 2>/dev/null || echo 0)
echo $((n + 1)) >n.txt
case $n in
    1) echo "one half" ;;
    3) echo 1; exit 3 ;;
    4) exec sleep 1000 ;;
    *) echo $n ;;
esac
END
chmod +x bad.sh
tiny b '"command": {"argv": ["./bad.sh", "{model}"], "timeout": 1}, "objectives": ["command"]'
rm -f n.txt
mscgym search b.json --quiet | grep '^trials' | sed 's/, [0-9]* repeats//'
jq -r 'select(.state == "failed") | .cause + ": " + .reason' b/tiny.jsonl
mscgym resume b/tiny.jsonl --allow-plugins --quiet | grep '^trials' | sed 's/, [0-9]* repeats//'
tiny n '"command": ["./absent.sh", "{model}"], "bounds": {"command": {"max": 1}}'
try mscgym search n.json --quiet

echo "- a program that lasts"
cat >lasting.py <<'END'
#!/usr/bin/env python3
"""Answers with the first number of the array in an outputs.safetensors. Writes down how often it was started."""
import json
import os
import struct
import sys
import time
open("starts.txt", "a").write("x")
wrong = json.load(open("wrong.json")) if os.path.exists("wrong.json") else {}
n = json.load(open("count.json")) if os.path.exists("count.json") else 0
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "done":
        open("ends.txt", "a").write(sys.argv[1])
        break
    with open(request["outputs"], "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        file.read(length)
        value, = struct.unpack("<f", file.read(4))
    answer, n = wrong.get(str(n)), n + 1
    json.dump(n, open("count.json", "w"))
    if answer == "end":
        sys.exit(3)
    if answer == "wait":
        time.sleep(1000)
    print(json.dumps(answer or {"value": value}), flush=True)
END
chmod +x lasting.py
tiny l '"command": {"argv": ["./lasting.py", "{outputs}"], "lasting": true}, "objectives": ["distill_loss"],
        "bounds": {"command": {"max": 100}}'
mscgym search l.json --quiet >/dev/null
echo "$(cat starts.txt) $(cat ends.txt)"
for name in l o; do # the same numbers as from first.py
    jq -s -r 'map(select(.kind == "trial") | [.choices, .metrics.command]) | sort | .[][1]' "$name/tiny.jsonl" >"$name.txt"
done
paste l.txt o.txt | awk '{ d = $1 - $2; n += d < 1e-6 && d > -1e-6 } END { print n, "of", NR }'
head -n 1 l/tiny.jsonl | jq -c '.config.quantize.gym[0].env.command'
try mscgym verify l/tiny.jsonl --allow-plugins
echo '{"2": {"value": "one half"}, "4": {"error": "no score"}, "6": "end", "8": "wait", "10": [1]}' >wrong.json
rm -f starts.txt count.json
sed -i 's/"lasting": true/"lasting": true, "timeout": 8/' l.json
mscgym search l.json --restart --quiet | grep '^trials' | sed 's/, [0-9]* repeats//'
jq -r 'select(.state == "failed") | .cause + ": " + .reason' l/tiny.jsonl
cat starts.txt
echo
# The first request to stop waits for the answer, the second one does not.
echo '{"5": "wait"}' >wrong.json
rm -r count.json l
sed -i 's/"lasting": true, "timeout": 8/"lasting": true/' l.json
mscgym search l.json >/dev/null 2>err.txt &
search=$!
while [ "$(cat count.json 2>/dev/null)" != 6 ]; do sleep 0.05; done
kill -TERM $search
while ! grep -q 'after the running trials' err.txt; do sleep 0.05; done
sleep 1 # two signals at once are one request
kill -TERM $search
wait $search
echo "exit $?"
tail -n 1 err.txt
grep -c '"state":"failed"' l/tiny.jsonl

echo "- what is refused"
for env in '"objectives": ["command"]' '"objectives": ["command"], "command": ["score"]' \
    '"objectives": ["command"], "command": 5'; do
    tiny r "$env"
    try mscgym search r.json
done
try mscgym resume a/tiny.jsonl --dry-run
