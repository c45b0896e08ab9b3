# An agent that ends by itself needs no budget, however large the space: 21 choices for each site are
# more points than any disk has room for.
. "$(dirname "$0")/../lib.sh"
cat >a.json <<END
{"workspace": "a", "verbose": "error",
 "gym": [{"record": "toy.jsonl", "env": {"type": "toy", "tasks": 12, "choices": 21},
          "agent": {"type": "grid_search", "mode": "per_task"}, "parallel": 64}]}
END
mscgym search a.json --quiet | head -3
