# A trial that uses up the machine's memory, so that the kernel kills its process. A program
# simulates the kernel: it kills the process whenever trial 7 is in flight. The recorded line is
# the same as in a search without workers, and each attempt ends a single process.
. "$(dirname "$0")/../lib.sh"
cat >killer.py <<'END_OF_PROGRAM'
# Kills the search process of `parent` whenever trial 7 is in flight (see search/attempt.c).
import os, signal, struct, sys, time
parent, path, n = int(sys.argv[1]), sys.argv[2], 0
def parent_lives():
    try:
        with open(f"/proc/{parent}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
def child():
    with open(f"/proc/{parent}/task/{parent}/children") as file:
        return int((file.read().split() or [0])[0])
last = None
while parent_lives():
    time.sleep(0.005)
    try:
        with open(path, "rb") as file:
            page = file.read()
        n_flying, n_suspects = (struct.unpack_from("I", page, at)[0] for at in (24, 44))
        flying = struct.unpack_from(f"{n_flying}q", page, 48)
        suspects = [struct.unpack_from("qBBB", page, 48 + 9 * 1024 + 16 * i) for i in range(n_suspects)]
        known = [suspect for suspect in suspects if suspect[0] == 7]
        # Wait until the new process has read what the last one left in the file.
        if 7 in flying and known != last:
            os.kill(child(), signal.SIGKILL)
            last, n = known, n + 1
    except (OSError, struct.error):
        pass
print(f"killed {n}")
END_OF_PROGRAM
mkdir -p package/mscgym_ray
cat >package/mscgym_ray/__main__.py <<'END_OF_PROGRAM'
# Kills the child of a worker soon after it has received trial 7.
import json, os, signal, time
from workers_here import Bridge
class Poisoned(Bridge):
    n = 0
    def send(self, number, line):
        super().send(number, line)
        if any(trial["id"] == 7 for trial in json.loads(line).get("trials", [])):
            time.sleep(0.05)
            pid = self.workers[number].pid
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                os.kill(int(file.read()), signal.SIGKILL)
            self.n += 1
bridge = Poisoned()
bridge.run()
with open("killed.txt", "w") as file:
    print(f"killed {bridge.n}", file=file)
END_OF_PROGRAM
if command -v python3 >/dev/null; then
    export PYTHONPATH=$PWD/package:$FILES/cluster PYTHONDONTWRITEBYTECODE=1
    program=$(command -v mscgym)
    toy a 20 '"delay_us": 200000'
    mscgym search a.json --quiet >/dev/null 2>&1 &
    python3 killer.py $! a/toy.jsonl.attempt
    wait $!
    cp a/toy.jsonl alone.jsonl
    mscgym search a.json --restart --quiet --cluster ray:auto:3 --worker-program "$program" >/dev/null 2>&1
    cat killed.txt
    mscgym show a/toy.jsonl --canonical | grep '"failed"' | sed 's/.*"id":\([0-9]*\).*"cause":"\([a-z]*\)".*"reason":"\([^"]*\)".*/\1 \2 \3/'
    mscgym show a/toy.jsonl --canonical >own.txt && mscgym show alone.jsonl --canonical >alone.txt &&
        cmp own.txt alone.txt && echo 'the same'
fi
