# Each trial has a single row, even if it is a uniform plan, among the best and on the front.
. "$(dirname "$0")/../lib.sh"
toy a 24 '"objectives": ["distill_loss", "size_bytes"]'
mscgym search a.json >/dev/null
mscgym show a/toy.jsonl --pareto
mscgym show a/toy.jsonl --pareto --top 6
mscgym show a/toy.jsonl --pareto --top 6 | grep -oE '^[a-z :]*(trial|uniform) [0-9]+' | sort | uniq -d
