# A budget that ends before grid search has measured its plan. The dry run says so, the last trial is a
# plan assembled from what is known, and a larger budget continues as if there had been no such trial.
. "$(dirname "$0")/../lib.sh"
grid() { # grid NAME TRIALS [MEMBERS [VERBOSE]]: writes NAME.json
    cat >"$1.json" <<END
{
  "workspace": "$1", "verbose": "${4:-error}",
  "gym": [{
    "record": "toy.jsonl",
    "env": {"type": "toy", "tasks": 12, "choices": 4, "seed": 2, "bounds": {"size_ratio": {"max": 0.08}}},
    "agent": {"type": "grid_search"},
    "budget": {"trials": $2}, "parallel": 8${3:+, $3}
  }]
}
END
}
grid a 30
mscgym search a.json --dry-run | grep plan
mscgym search a.json --dry-run --json | grep -o '"trials_to_plan": *[0-9]*'
mscgym search a.json
grep -o '"id":33,.*"assembled":true' a/toy.jsonl
mscgym show a/toy.jsonl --phases | head -n 3
mscgym verify a/toy.jsonl --trials 33
grid a 37
mscgym search a.json --dry-run | grep -c plan
mscgym search a.json | sed -n 2,3p
grid a 60
mscgym search a.json | sed -n 2,3p
mscgym show a/toy.jsonl --canonical >long
grid b 60
mscgym search b.json >/dev/null
mscgym show b/toy.jsonl --canonical | diff - long && echo "the same sequence"
# Greedy search cannot predict when it will meet the bounds.
sed 's/"grid_search"/"grid_search", "mode": "greedy"/; s/60/9/' b.json >c.json
mscgym search c.json --restart --dry-run | grep plan
