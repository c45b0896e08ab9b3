# --warm-from with the record of another network, of which no task has the same name: it teaches how
# losses depend on features. The header keeps it, so the search continues without the file after kills.
. "$(dirname "$0")/../lib.sh"
cat >make.py <<'END'
import json, math, random, sys
name, tasks, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw = random.Random(seed)
of_tasks, alone = [], []
for t in range(tasks):  # tasks of kind 1 lose much less than their error says
    kind, scale, rows, losses = draw.randrange(2), math.exp(draw.gauss(0, .2)), [[0.0]], [0.0]
    for choice in (1, 2):
        error = choice + draw.gauss(0, 1)
        rows.append([math.exp(error)])
        losses.append(scale * math.exp(2 * choice + .3 * error - 3 * kind))
    alone.append(losses)
    of_tasks.append({"name": f"{name}_{t}", "choices": ["8", "6", "4"], "features": [kind], "choice_features": rows})
json.dump({"schema": "mscgym.table.1", "features": ["kind"], "choice_features": ["output_error"], "tasks": of_tasks,
           "metrics": [{"name": "distill_loss", "constant": 1, "alone": alone}],
           "costs": [{"name": "size_bytes", "alone": [[8, 6, 4]] * tasks}]}, open(f"{name}_table.json", "w"))
json.dump({"workspace": name, "verbose": "info", "gym": [{
    "record": "r.jsonl", "env": {"type": "table", "file": f"{name}_table.json",
                                 "bounds": {"size_bytes": {"max": 5.5 * tasks}}},
    "agent": {"type": "auto"}, "budget": {"trials": 60}, "parallel": 2}]}, open(f"{name}.json", "w"))
END
best() { # the best loss within the bound of the first trials of a record
    python3 -c 'import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
print(min(t["metrics"]["distill_loss"] for t in lines[1:int(sys.argv[2]) + 1] if t["state"] == "complete"))' "$@"
}
python3 make.py one 16 1
python3 make.py two 24 11
mscgym search one.json --quiet >/dev/null 2>&1
mscgym search two.json --quiet >/dev/null 2>&1
mv two alone
mscgym search two.json --warm-from one/r.jsonl 2>&1 | grep '^warm'
python3 -c 'print("its first plan is better" if float(input()) < float(input()) else "no gain")' \
    <<<"$(best two/r.jsonl 7; best alone/r.jsonl 7)"
mscgym show two/r.jsonl --canonical >whole.txt
head -n 1 whole.txt | grep -o '"coefficients":{[^[]*'
head -n 1 whole.txt | grep -o '"feature":"[^{]*"log":[a-z]*'
mscgym show two/r.jsonl --phases >/dev/null && echo "its proposals can be made again"
rm -r two
for lines in 8 20 41; do
    killed $lines two/r.jsonl "" mscgym search two.json --warm-from one/r.jsonl
done
mv one/r.jsonl gone.jsonl
mscgym resume two/r.jsonl --quiet >/dev/null 2>&1
mscgym show two/r.jsonl --canonical | cmp - whole.txt && echo "the same record"
# The dry run of a search that has not begun.
rm -r two
mscgym search two.json --dry-run --warm-from gone.jsonl 2>&1 | grep '^warm'
# Copies of a record teach once: the coefficients are those of one.
cp gone.jsonl copy.jsonl
mscgym search two.json --warm-from gone.jsonl --warm-from copy.jsonl 2>&1 | grep 'warm from'
coefficients() { grep -o '"coefficients":.*variance[^]]*'; }
head -n 1 whole.txt | coefficients >once.txt
head -n 1 two/r.jsonl | coefficients | cmp - once.txt && test -s once.txt && echo "the same coefficients"
rm -r two
# Neither a task nor a feature in common.
toy toy 10
mscgym search toy.json --quiet >/dev/null
try mscgym search two.json --quiet --warm-from toy/toy.jsonl
