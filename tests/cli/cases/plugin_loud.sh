# What a library prints on standard output does not mix with messages or JSON. Workers that print
# anything but messages end the search.
. "$(dirname "$0")/../lib.sh"
cp "$LOUD" loud.so
cat >loud.json <<END
{"workspace": "loud", "verbose": "error",
 "gym": [{"record": "loud.jsonl", "env": {"type": "./loud.so"}, "agent": {"type": "grid_search", "mode": "full"}}]}
END
mscgym search loud.json --json 2>said.txt | jq -c '.[].winner.metrics'
sort -u said.txt
timeout 60 mscgym search loud.json --restart --cluster local:1 --json --quiet 2>said.txt | jq -c '.[].winner.metrics'
sort -u said.txt
printf '%s\n' '{"method":"reset"}' '{"method":"step","choice":1}' '{"method":"done"}' |
    mscgym gym loud.json 2>said.txt | jq -c '[.reward, .terminated]'
sort -u said.txt
mscgym envs --check ./loud.so --json 2>said.txt | jq -c 'map(.kept) | unique'
sort -u said.txt
# In place of a worker, a program that prints a line that is not a message, and waits.
mkdir bin
printf '#!/bin/sh\nexec "$PWD/nonsense"\n' >bin/srun
printf '#!/bin/sh\n' >bin/scancel
printf '#!/bin/sh\necho "good morning"\necho "good day"\nwhile read -r line; do :; done\n' >nonsense
chmod +x bin/srun bin/scancel nonsense
toy a 12
PATH=$PWD/bin:$PATH try timeout 60 mscgym search a.json --quiet --cluster slurm:1 --worker-program "$PWD/nonsense" |
    sed 's/worker [0-9]* /worker N /'
