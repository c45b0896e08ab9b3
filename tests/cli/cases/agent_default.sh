# The agent that searches where none is named, and searches that began when it was another.
. "$(dirname "$0")/../lib.sh"
entry() { # $1: more of the entry
    printf '{"workspace": "%s", "gym": [{"env": {"type": "toy", "tasks": 6, "choices": 4,
        "bounds": {"size_ratio": {"max": 0.06}}}%s}]}' "$1" "$2" >"$1.json"
}
agent() {
    head -n 1 "$1/gym_0.jsonl" | grep -o '"agent":{"type":"[a-z_]*"' | head -n 1
}
entry new ""
mscgym search new.json --quiet | grep -e '^trials' -e '^ended'
agent new

# Without a budget it ends by itself, and goes on as what it was.
entry old ', "agent": {"type": "grid_search"}'
mscgym search old.json --quiet | grep -e '^trials' -e '^ended'
entry old ""
mscgym search old.json --quiet | grep -e '^trials' -e '^ended'
agent old

# Half of it, and the rest under the new default.
entry old ', "agent": {"type": "grid_search"}'
mscgym search old.json --restart --trials 9 --quiet | grep -e '^trials' -e '^ended'
entry old ""
mscgym search old.json --trials 12 --quiet | grep -e '^trials' -e '^ended'
mscgym search old.json --quiet | grep -e '^trials' -e '^ended'
agent old
