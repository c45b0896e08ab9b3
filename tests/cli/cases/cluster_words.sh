# Messages on workers: which joined, which was lost. A cluster that fails to start leaves the old
# record unchanged.
. "$(dirname "$0")/../lib.sh"
toy a 60 '"delay_us": 20000'
sed 's/"verbose": "error"/"verbose": "info"/; s/"trials": 60/"trials": 5000/' a.json >loud.json
mscgym search a.json --quiet --trials 6 >/dev/null
sum=$(cksum <a/toy.jsonl)
# failed WHAT COMMAND...: the command fails, and the record and its other files are unchanged.
failed() {
    local what=$1
    shift
    "$@" >said.txt 2>&1 && echo "$what: it does not fail"
    grep '^mscgym: ' said.txt | sed "s|$PWD/||g; s|mscgym-[0-9a-f]*-[0-9]*|mscgym-…|g"
    [ "$(cksum <a/toy.jsonl)" = "$sum" ] && [ ! -e a/toy.jsonl.1 ] && echo "$what: the old record is there"
}
mkdir -p package/mscgym_ray bin words
cat >package/mscgym_ray/__main__.py <<'END'
import sys
from workers_here import Bridge
bridge = Bridge()
bridge.say(note="the cluster is reached")
if sys.argv[1] == "wrong:1":
    bridge.say(error="wrong:1 has not answered")
bridge.run()
END
cat >words/sinfo <<'END'
#!/bin/sh
echo "sinfo: error: no controller" >&2
exit 1
END
printf '#!/bin/sh\nexit 3\n' >words/srun
chmod +x words/*
ln -s "$(command -v sh)" bin/
ln -s "$(python3 -c 'import sys; print(sys.executable)')" bin/python3
program=$(command -v mscgym)
for kind in ray:wrong:1 slurm slurm:1; do
    failed "$kind" env PYTHONPATH="$PWD/package:$FILES/cluster" PATH="$PWD/bin" "$program" search a.json --restart \
        --cluster $kind
done
PATH=$PWD/words:$PATH failed 'no controller' mscgym search a.json --restart --cluster slurm
PATH=$PWD/words:$PATH failed 'no job' mscgym search a.json --restart --cluster slurm:1
# Other starts that fail: a plug-in that is not a library, an agent that cannot be started.
with() { sed "$1" a.json >b.json; }
printf 'no library' >none.so
with 's|"type": "toy"|"type": "./none.so"|'
failed 'no plug-in' mscgym search b.json --restart
with "s|\"agent\": .*|\"agent\": {\"type\": \"process\", \"command\": [\"./nothing\"]},|"
failed 'no agent' mscgym search b.json --restart
# A plug-in that ends the process, and each process started after it.
cp "$FAULTS" faults.so
with 's|"agent": .*|"agent": {"type": "library", "path": "./faults.so"},|'
failed 'a plug-in that ends the process' env MSC_FAULT=exit "$program" search b.json --restart
mscgym search a.json --quiet --trials 8 >/dev/null && [ -e a/toy.jsonl ] && echo 'and goes on'
# A successful --restart sets the old record aside.
mscgym search a.json --restart --quiet --trials 3 >/dev/null
ls a | grep jsonl
# Workers that joined at the start, one that was lost, and the one that replaced it.
children() { cat /proc/"$1"/task/"$1"/children | tr -d '\n'; }
mscgym search loud.json --restart --cluster local:2 >/dev/null 2>joined.txt &
search=$!
while ! grep -q 'have joined' joined.txt && kill -0 $search; do sleep 0.05; done 2>/dev/null
for worker in $(children "$(children $search | tr -d ' ')"); do
    grep -aq worker /proc/"$worker"/cmdline && kill -KILL "$worker" && break
done 2>/dev/null
while ! grep -q 'worker has joined' joined.txt && kill -0 $search; do sleep 0.05; done 2>/dev/null
kill -INT $search
wait $search
grep -o 'workers\? ha.*joined.*\|worker .* is lost.*\|workers: .*' joined.txt | sed 's/[A-Za-z0-9.-]* [0-9]\{2,\}\b/BOX PID/g'
PYTHONPATH=$PWD/package:$FILES/cluster mscgym search loud.json --restart --trials 2 --cluster ray:auto:1 \
    --worker-program "$program" 2>&1 >/dev/null | grep 'is reached'
# Steps within a Slurm job share the job's processors.
printf '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n' >words/srun
SLURM_JOB_ID=12 SLURM_CPUS_ON_NODE=1 SLURM_JOB_NUM_NODES=2 PATH=$PWD/words:$PATH mscgym search loud.json --restart \
    --trials 2 --cluster slurm:3 --worker-program "$program" 2>&1 >/dev/null | grep -o 'this is job.*\| of job 12' | head -n 2
# Two workers that would take longer than no worker cause a warning, unless each has its own processors.
worth() { mscgym search "$@" --dry-run --restart 2>&1 | grep -o '^workers.*' | sed 's/[0-9.]* [mun]*s\b/…/g; s/[0-9]* threads/… threads/'; }
sed 's/20000/1/' a.json >quick.json
sed 's/20000/400000/; s/"trials": 60/"trials": 6000/' a.json >slow.json
tiny t
worth quick.json --cluster slurm:2
worth slow.json --cluster slurm:2
worth t.json --cluster local:2
