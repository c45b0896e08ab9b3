# What an agent has learnt is said at the end of a search, by `show --phases`, by a dry run and on the
# report's page. In the table, task_2 and task_4 act together at their cheapest choices, the more by 4,
# and no point with the dearest choice of task_1 can be measured in the second search.
. "$(dirname "$0")/../lib.sh"
cat >make.py <<'END'
import itertools, json, sys
name, fails = sys.argv[1], sys.argv[2] == "fails"
tasks, choices = 6, 3
rows = [",".join([*(f"task_{t}" for t in range(tasks)), "distill_loss"])]
for point in itertools.product(range(choices), repeat=tasks):
    loss = sum((1 + t / 4) * c for t, c in enumerate(point)) + 4 * (point[2] == 2 and point[4] == 2)
    rows.append(",".join([*(str(choices - c) for c in point), "failed" if fails and point[1] == 0 else repr(loss)]))
open(f"{name}.csv", "w").write("\n".join(rows) + "\n")
labels = [str(choices - c) for c in range(choices)]
json.dump({"schema": "mscgym.table.1", "rows": f"{name}.csv",
           "tasks": [{"name": f"task_{t}", "choices": labels} for t in range(tasks)],
           "metrics": [{"name": "distill_loss"}],
           "costs": [{"name": "size_bytes", "alone": [[9, 6, 3]] * tasks}]}, open(f"{name}_table.json", "w"))
json.dump({"workspace": name, "verbose": "error", "gym": [{
    "record": "r.jsonl", "env": {"type": "table", "file": f"{name}_table.json",
                                 "bounds": {"size_bytes": {"max": 36}}},
    "agent": {"type": "auto"}, "budget": {"trials": 60}, "parallel": 4}]}, open(f"{name}.json", "w"))
END
learnt() { # prints the list of the report, or of the estimate
    python3 -c 'import json, sys
report = json.load(sys.stdin)
report = report[0] if isinstance(report, list) else report
print(*report.get("estimate", report).get("learnt", ["nothing"]), sep="\n")'
}
python3 make.py pair no
python3 make.py fail fails
echo "before"
mscgym search pair.json --dry-run | grep '^learnt' || echo "nothing"
for name in pair fail; do
    echo "$name"
    mscgym search $name.json --json 2>/dev/null | learnt >searched.txt
    cat searched.txt
    mscgym show $name/r.jsonl --json | learnt | cmp - searched.txt
    mscgym show $name/r.jsonl --phases --json | learnt | cmp - searched.txt
    mscgym show $name/r.jsonl --phases | sed -n 's/^  learnt: //p' | cmp - searched.txt
    mscgym search $name.json --dry-run --json 2>/dev/null | learnt | cmp - searched.txt
    mscgym search $name.json --dry-run | sed -n 's/^learnt: //p' | cmp - searched.txt
    mscgym search $name.json --dry-run --restart | grep '^learnt'
    mscgym report $name/r.jsonl >/dev/null
    sed -n '/id="r0-learnt"/,/<\/section>/p' $name/r.html
done
# From the record of another search: the same pair, and nothing is written.
sed 's/"workspace": "pair"/"workspace": "warm"/; s/"max": 36/"max": 40/' pair.json >warm.json
mscgym search warm.json --dry-run --warm-from pair/r.jsonl | grep '^learnt'
ls
# A record that another agent began is refused. A search that goes on has said nothing yet.
sed 's/"type": "auto"/"type": "evolutionary"/' pair.json >other.json
try mscgym search other.json --dry-run
mscgym search pair.json --trials 80 --quiet >/dev/null
rm pair/r.jsonl.result.json
mscgym show pair/r.jsonl --json | learnt
# An agent in a library, too. Control characters in what it says are escaped.
toy lib 30
sed -i "s|\"agent\": {[^}]*}|\"agent\": {\"type\": \"library\", \"path\": \"$HILL_CLIMB\"}|" lib.json
mscgym search lib.json --json 2>/dev/null | learnt
# Agents without remarks.
toy evolved 30
mscgym search evolved.json --json 2>/dev/null | learnt
mscgym report evolved/toy.jsonl >/dev/null
grep 'r0-learnt' evolved/toy.html || echo "no section"
