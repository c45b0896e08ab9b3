# A search with several workers writes the same record as a single process, even if workers die.
. "$(dirname "$0")/../lib.sh"
same() {
    mscgym show "$1" --canonical >own.txt && mscgym show alone.jsonl --canonical >alone.txt &&
        cmp own.txt alone.txt && echo "$2: the same"
}
alone() {
    mscgym search "$1.json" --quiet >/dev/null 2>&1
    cp "$2" alone.jsonl
}
toy a 60
alone a a/toy.jsonl
for n in 1 3; do
    mscgym search a.json --restart --quiet --cluster local:$n >/dev/null
    same a/toy.jsonl "toy, $n workers"
done
# A trial that crashes has the same line as without workers.
toy b 20 '"crash_at": 7'
alone b b/toy.jsonl
mscgym search b.json --restart --quiet --cluster local:2 >/dev/null 2>&1
same b/toy.jsonl crash
grep -o 'the process crashed while it evaluated this trial alone' b/toy.jsonl
# Losses that are not numbers are failures, also where a second worker checks them.
toy n 60 '"fail_every": 2'
alone n n/toy.jsonl
mscgym search n.json --restart --quiet --cluster local:2 >/dev/null
same n/toy.jsonl "no numbers"
# More and fewer workers than batches; stopped, and continued with another number of workers.
tiny d
alone d d/tiny.jsonl
for n in 2 7; do
    mscgym search d.json --restart --quiet --cluster local:$n >/dev/null
    same d/tiny.jsonl "tiny, $n workers"
done
mscgym search d.json --restart --quiet --trials 5 --cluster local:3 >/dev/null
mscgym resume d/tiny.jsonl --quiet --trials 12 --cluster local:2 >/dev/null
same d/tiny.jsonl 'tiny, resumed'
# A race is split by trials, also if its trials have bounds from the start.
sed 's/"budget"/"race": true, "budget"/; s/"random"/"evolutionary", "bounded": true/' d.json >r.json
sed -i 's/tiny.jsonl/raced.jsonl/' r.json
alone r d/raced.jsonl
mscgym search r.json --restart --quiet --cluster local:2 >/dev/null
same d/raced.jsonl raced
# Workers are killed while they measure.
toy e 400 '"delay_us": 4000'
alone e e/toy.jsonl
children() { cat /proc/"$1"/task/"$1"/children | tr -d '\n'; }
mscgym search e.json --restart --quiet --cluster local:3 >/dev/null 2>killed.txt &
search=$!
killed=0
while [ $killed -lt 3 ] && kill -0 $search 2>/dev/null; do
    for worker in $(children "$(children $search | tr -d ' ')"); do
        if grep -aq worker /proc/"$worker"/cmdline && [ $killed -lt 3 ] && kill -KILL "$worker"; then
            killed=$((killed + 1))
            sleep 0.2
        fi
    done 2>/dev/null
    sleep 0.05
done
wait $search
same e/toy.jsonl "killed $killed"
# The parent process of a worker reports "busy" while trials are in flight.
{
    echo '{"method":"init","protocol":1,"record":"'"$PWD"'/e/toy.jsonl","threads":1}'
    trials=$(seq 1000 | sed 's/.*/{"id":&,"choices":[0,0,0,0,0,0]}/' | paste -sd,)
    echo '{"method":"evaluate","parts":[{"id":7,"first":0,"n":0}],"trials":['"$trials"']}'
} | mscgym worker --quiet | grep -o '"busy":true\|{"id":7' | uniq
alone a a/toy.jsonl
# More pipes than the soft limit on open files allows, then more than the hard limit allows.
(ulimit -Sn 40 && mscgym search a.json --restart --quiet --cluster local:12 >/dev/null)
same a/toy.jsonl 'few open files'
(ulimit -n 100 && try mscgym search a.json --restart --quiet --cluster local:50)
# Invalid values of --cluster.
try mscgym search a.json --cluster mpi:4
try mscgym search a.json --cluster local:0
# Workers that a bridge program starts. It replaces the Python package for Ray and has one worker.
mkdir -p package/mscgym_ray
cat >package/mscgym_ray/__main__.py <<'END'
import sys
from workers_here import Bridge
if sys.argv[1] == "silent:1":
    sys.exit(3)
bridge = Bridge()
if sys.argv[1] == "loud:1":
    print("Ray started a node", flush=True)
if sys.argv[1] == "wrong:1":
    bridge.say(error="the token is wrong")
bridge.run()
END
if command -v python3 >/dev/null; then
    export PYTHONPATH=$PWD/package:$FILES/cluster PYTHONDONTWRITEBYTECODE=1
    program=$(command -v mscgym)
    alone a a/toy.jsonl
    mscgym search a.json --restart --quiet --cluster ray:auto:3 --worker-program "$program" >/dev/null
    same a/toy.jsonl ray
    for address in silent:1 loud:1 wrong:1; do
        try mscgym search a.json --restart --quiet --cluster ray:$address --worker-program "$program"
    done
    MSCGYM_PYTHON=no/python3 try mscgym search a.json --restart --quiet --cluster ray:auto
fi
try mscgym search a.json --cluster ray:box
# Slurm, replaced by scripts: srun runs its command here, sinfo lists two nodes.
program=$(command -v mscgym)
mkdir bin
printf '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n' >bin/srun
printf '#!/bin/sh\necho "$@" >>sinfo.txt\necho 1\necho 2\n' >bin/sinfo
chmod +x bin/srun bin/sinfo
alone a a/toy.jsonl
PATH=$PWD/bin:$PATH mscgym search a.json --restart --quiet --cluster slurm:night:2 --worker-program "$program" >/dev/null
same a/toy.jsonl slurm
PATH=$PWD/nothing try "$program" search a.json --restart --cluster slurm:1 2>&1 | sed '/quantize\|gym\[/d'
PATH=$PWD/bin:$PATH mscgym search a.json --restart --quiet --cluster slurm:night --worker-program "$program" >/dev/null
same a/toy.jsonl 'slurm, as many as there are nodes'
cat sinfo.txt
# First a worker that dies each time before it is ready; then srun is missing for a moment.
printf '#!/bin/sh\necho "{\\"beat\\":1,\\"busy\\":false}"\nread line\nexit 7\n' >bin/dying
chmod +x bin/dying
PATH=$PWD/bin:$PATH try mscgym search a.json --restart --quiet --cluster slurm:2 --worker-program "$PWD/bin/dying" |
    sed 's/mscgym-[0-9a-f]*-[0-9]*/mscgym-…/'
mv bin/srun bin/gone
(sleep 0.5 && mv bin/gone bin/srun) &
PATH=$PWD/bin "$program" search a.json --restart --quiet --cluster slurm:1 --worker-program "$program" >/dev/null
same a/toy.jsonl 'slurm, after a moment'
printf '#!/bin/sh\n' >bin/sinfo
PATH=$PWD/bin:$PATH try mscgym search a.json --restart --cluster slurm
try mscgym search a.json --cluster slurm:night:0
