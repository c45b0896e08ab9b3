# Nodes of a cluster with different numerics: those with the requested numerics id are used, others refused.
. "$(dirname "$0")/../lib.sh"
mkdir -p package/mscgym_ray
cat >package/mscgym_ray/__main__.py <<'END_OF_PROGRAM'
# Every second worker has an old processor.
import json
from workers_here import Bridge
class Mixed(Bridge):
    def send(self, number, line):
        request = json.loads(line)
        if request["method"] == "init":
            request["isa"] = "avx" if number % 2 else "sse41"
        super().send(number, json.dumps(request, separators=(",", ":")))
Mixed().run()
END_OF_PROGRAM
export PYTHONPATH=$PWD/package:$FILES/cluster PYTHONDONTWRITEBYTECODE=1
program=$(command -v mscgym)
id() { mscgym devices ${1:+--isa $1} --json | jq -r '.devices[0].numerics'; }
short() { sed 's/cpu\/[^"]* \([a-z0-9_]*\) int8-[a-z]*/\1/g; s/worker [^ ]* [0-9]* is/worker … is/; s|/[^ ]*/||g'; }
level=$(mscgym devices --json | jq -r '.isa[-1]')
old=$(id sse41)
tiny d
sed -i 's/"verbose": "error"/"verbose": "warn"/' d.json
# The reference: one machine continues a search that another machine prepared.
mscgym search d.json --trials 0 --quiet >/dev/null
sed -i 2,\$d d/tiny.jsonl
head -1 d/tiny.jsonl | jq -r .numerics | sed 's/.* \([a-z0-9_]*\) int8.*/\1/' | sed "s/^$level\$/its own/"
mscgym resume d/tiny.jsonl --trials 12 --quiet --isa sse41 --accept-new-numerics >/dev/null
mscgym show d/tiny.jsonl --canonical >alone.txt
mscgym search d.json --restart --numerics "$old" --cluster ray:auto:4 --worker-program "$program" 2>&1 >/dev/null |
    grep refused | short | sed 's/^[^ ]* [^ ]* //; s/, as were 1 before it//' | sort -u
mscgym show d/tiny.jsonl --canonical >own.txt
cmp alone.txt own.txt && echo 'the same'
# Continuing uses the same numerics. Without them it is refused, as no worker computes like the record.
mscgym resume d/tiny.jsonl --numerics "$old" --trials 14 --quiet --cluster ray:auto:1 --worker-program "$program" >/dev/null
grep -c '"kind":"trial"' d/tiny.jsonl
if [ "$level" = sse41 ]; then
    echo refused
else
    mscgym resume d/tiny.jsonl --trials 16 --quiet --cluster ray:auto:1 --worker-program "$program" 2>&1 |
        grep -o 'would continue with' | sed 's/.*/refused/'
fi
try mscgym search d.json --restart --quiet --numerics none --cluster ray:auto:2 --worker-program "$program" |
    short | sed 's/"avx"\|"sse41"/…/' # depends on which worker came last
try mscgym search d.json --numerics none | short | sed "s/with \"$level\"/with its own/"
# The numerics of this machine are not foreign: the record has no new segment.
mscgym search d.json --restart --quiet --numerics "$(id)" --trials 3 >/dev/null && ! grep segment d/tiny.jsonl
