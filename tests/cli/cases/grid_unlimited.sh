# An agent that ends by itself needs no budget, however large the space: with 21 choices per task
# there are more points than a disk can hold.
. "$(dirname "$0")/../lib.sh"
cat >a.json <<END
{"workspace": "a", "verbose": "error",
 "gym": [{"record": "toy.jsonl", "env": {"type": "toy", "tasks": 12, "choices": 21},
          "agent": {"type": "grid_search", "mode": "per_task"}, "parallel": 64}]}
END
mscgym search a.json --quiet | head -3
