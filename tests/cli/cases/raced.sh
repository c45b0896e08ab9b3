# A race: which trials go on, the same metrics as without a race, and the same record however the
# search was stopped. check_race.py computes the expected decisions again.
. "$(dirname "$0")/../lib.sh"

# raced NAME AGENT TRIALS RACE: 16 samples in batches of 1, rounds of 8.
raced() {
    tiny "$1" '"bounds": {"size_ratio": {"max": 0.24}}'
    sed -i -e "s|{\"type\": \"random\"}|{$2}|" -e 's|"batch": 2|"batch": 1|' \
        -e 's|{"bits": 4}|{"bits": 6}, {"bits": 5}, {"bits": 4}, {"bits": 3}|' \
        -e "s|\"budget\": {\"trials\": 12}, \"parallel\": 4|\"budget\": {\"trials\": $3}, \"parallel\": 8, \"race\": $4|" "$1.json"
}
# lines NAME: trials in canonical form, without rungs.
lines() { mscgym show "$1/tiny.jsonl" --canonical | grep '"kind":"trial"' | sed 's/,"rungs":[^]]*\]//; s/,"checksum".*//'; }

# comes_back NAME: a search of 40 trials ends with the same record, however it is stopped.
comes_back() {
    mscgym search "$1.json" --quiet >/dev/null
    mscgym verify "$1/tiny.jsonl" --quiet >verified.txt && echo "$1: verified"
    python3 "$FILES/check_race.py" "$1/tiny.jsonl"
    lines "$1" | grep -v '"state":"pruned"' | grep -vxFf <(lines plain) ||
        echo "survivors have the metrics that they have without"
    lines "$1" | grep -o '"reason":"[^"]*"' | sort -u
    grep -o '"race":{[^}]*}' "$1/tiny.jsonl" | tail -n 1
    # The budget ends within a round; the rest follows with another number of threads.
    mscgym show "$1/tiny.jsonl" --canonical >whole.txt
    for trials in 5 19; do
        mscgym search "$1.json" --restart --quiet --trials $trials --threads 2 >/dev/null
        mscgym resume "$1/tiny.jsonl" --quiet --trials 40 --threads 1 >/dev/null
        mscgym show "$1/tiny.jsonl" --canonical | cmp - whole.txt && echo "stopped after $trials: the same record"
    done
    # Cut at any line, as by a kill.
    cp "$1/tiny.jsonl" all.jsonl
    for n in 4 7 12 30; do
        head -n $n all.jsonl >"$1/tiny.jsonl"
        mscgym search "$1.json" --quiet >/dev/null
        mscgym show "$1/tiny.jsonl" --canonical | cmp - whole.txt && echo "cut after $n lines: the same record"
    done
    # Killed together with its parent process.
    rm "$1/tiny.jsonl"
    for lines in 5 15; do
        killed $lines "$1/tiny.jsonl" "" mscgym search "$1.json" --quiet
    done
    mscgym search "$1.json" --quiet >/dev/null
    mscgym show "$1/tiny.jsonl" --canonical | cmp - whole.txt && echo "killed: the same record"
}
race='{"rungs": [1, 2, 4], "keep": 0.5}'
raced plain '"type": "random"' 40 false
mscgym search plain.json --quiet >/dev/null
raced halved '"type": "random"' 40 '{"rungs": [1, 2, 4], "margin": false}'
comes_back halved
raced whole '"type": "random"' 40 "$race"
comes_back whole

# agent NAME AGENT [bounded]: the agent observes eliminated trials and continues from its record.
# Decisions on agents that set bounds of their own are not checked.
agent() {
    raced "$1" "$2" 48 true
    mscgym search "$1.json" --quiet --trials 11 >/dev/null
    mscgym search "$1.json" --quiet >/dev/null
    mscgym show "$1/tiny.jsonl" --canonical >"$1.txt"
    mscgym search "$1.json" --quiet --restart >/dev/null
    mscgym show "$1/tiny.jsonl" --canonical | cmp - "$1.txt" && mscgym verify "$1/tiny.jsonl" --quiet >verified.txt &&
        echo "$1: resumed and verified"
    [ "$3" = bounded ] || python3 "$FILES/check_race.py" "$1/tiny.jsonl"
    mscgym show "$1/tiny.jsonl" --phases | grep -q '^phases' || echo "$1: its agent does not replay"
    grep -q '"state":"pruned"' "$1/tiny.jsonl" && grep -q '"state":"complete"' "$1/tiny.jsonl" || echo "$1: no race"
}
agent auto '"type": "auto"'
agent evolution '"type": "evolutionary", "population": 4'
agent per_task '"type": "grid_search"' bounded
agent greedy '"type": "grid_search", "mode": "greedy"' bounded

# The greedy baseline is not raced.
raced beside '"type": "random"' 8 true
mscgym search beside.json --quiet --baseline greedy >/dev/null
grep -q '"rungs":\|"race":' beside/tiny.greedy.jsonl || echo "the greedy search beside it is not raced"

# The dry run of a race, and races that are refused.
mscgym search plain.json --dry-run --restart 2>&1 | grep -c '^race'
mscgym search halved.json --dry-run --restart 2>&1 | grep '^race'
mscgym search auto.json --dry-run --restart 2>&1 | grep '^race'
mscgym config --show whole.json | tr -d ' \n' | grep -o '"race":{[^}]*}'
refused() {
    rm -rf bad
    raced bad "$1" 8 "$2"
    sed -i "s|\"bounds\": {|$3 \"bounds\": {|" bad.json
    mscgym search bad.json --quiet 2>&1
}
refused '"type": "random"' '{"rungs": [1, 16]}' ''
refused '"type": "random"' '{"rungs": [2, 1]}' ''
refused '"type": "random"' '{"rungs": [1], "keep": 1}' ''
refused '"type": "random"' '{"rungs": [1], "margin": 0}' ''
refused '"type": "random"' '{"rung": [1]}' ''
refused '"type": "random"' '3' ''
refused '"type": "random"' 'true' '"objectives": ["distill_loss", "size_bytes"],'
toy toy 8
sed -i 's|"parallel": 4|"parallel": 4, "race": true|' toy.json
try mscgym search toy.json --quiet
