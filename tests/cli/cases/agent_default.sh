# The default agent, and records that another agent began before the configuration named none.
. "$(dirname "$0")/../lib.sh"
entry() { # entry NAME MEMBERS: writes NAME.json; MEMBERS are further members of the search
    printf '{"workspace": "%s", "gym": [{"env": {"type": "toy", "tasks": 6, "choices": 4,
        "bounds": {"size_ratio": {"max": 0.06}}}%s}]}' "$1" "$2" >"$1.json"
}
agent() {
    head -n 1 "$1/gym_0.jsonl" | grep -o '"agent":{"type":"[a-z_]*"' | head -n 1
}
entry new ""
mscgym search new.json --quiet | grep -e '^trials' -e '^ended'
agent new

# Without a budget the default agent ends by itself. A record continues with the agent that began it.
entry old ', "agent": {"type": "grid_search"}'
mscgym search old.json --quiet | grep -e '^trials' -e '^ended'
entry old ""
mscgym search old.json --quiet | grep -e '^trials' -e '^ended'
agent old

# Grid search makes half of the trials; then a configuration that names no agent continues.
entry old ', "agent": {"type": "grid_search"}'
mscgym search old.json --restart --trials 9 --quiet | grep -e '^trials' -e '^ended'
entry old ""
mscgym search old.json --trials 12 --quiet | grep -e '^trials' -e '^ended'
mscgym search old.json --quiet | grep -e '^trials' -e '^ended'
agent old
