# Which searches are races if the configuration does not say so, and that records keep their rules.
. "$(dirname "$0")/../lib.sh"

# search NAME EXPRESSION...: NAME.json, a search of agent auto with 16 samples in batches of 1 and a
# budget of time, changed by sed's expressions. Prints what its record's header says.
search() {
    local name=$1
    shift
    tiny "$name" '"bounds": {"size_ratio": {"max": 0.24}}'
    sed -i -e 's|"type": "random"|"type": "auto"|' -e 's|"batch": 2|"batch": 1|' -e 's|, "parallel": 4||' \
        -e 's|{"bits": 4}|{"bits": 6}, {"bits": 5}, {"bits": 4}, {"bits": 3}|' \
        -e 's|{"trials": 12}|{"time": "1h"}|' "${@/#/-e}" "$name.json"
    mscgym search "$name.json" --quiet --trials 24 >/dev/null || return
    rules "$name"
}
rules() { # the size of a round, and the rules of the race
    head -n 1 "$1/tiny.jsonl" | jq -c "[\"$1\", .parallel, .race]"
}

search default
search small 's|"budget"|"parallel": 4, &|'
search large 's|"budget"|"parallel": 16, &|'
search off 's|"budget"|"race": false, &|'
search on 's|"budget"|"race": true, &|' 's|"type": "auto"|"type": "random"|'
search batches 's|"batch": 1|"batch": 2|'
search random 's|"type": "auto"|"type": "random"|'
search rerank 's|"budget"|"rerank": {"top": 2, "command": {"argv": ["sh", "-c", "echo 1", "{model}"]}}, &|'
search front 's|"bounds"|"objectives": ["distill_loss", "size_bytes"], &|'
search accuracy 's|{"size_ratio"|{"accuracy": {"min": 0.1}, "size_ratio"|'
search counted 's|{"time": "1h"}|{"trials": 24}|'
search both 's|{"time": "1h"}|{"trials": 24, "time": "1h"}|'

# same NAME: the record continues with its rules and is the same as without a stop.
same() {
    mscgym show "$1/tiny.jsonl" --canonical | cmp - "$1.txt" && echo "$1: the same record"
}
# A record of 24 trials that began before a race could be the default: its header has a size of a round,
# and no word of a race.
search old 's|"budget"|"parallel": 32, &|'
sed -i 's|"parallel": 32, ||' old.json
mscgym search old.json --quiet --trials 60 >/dev/null && rules old
mscgym show old/tiny.jsonl --canonical >old.txt
sed -i 's|"budget"|"parallel": 32, "race": false, &|' old.json
mscgym search old.json --restart --quiet --trials 60 >/dev/null
diff <(grep '"kind":"trial"' old.txt | sed 's/,"checksum".*//') \
    <(mscgym show old/tiny.jsonl --canonical | grep '"kind":"trial"' | sed 's/,"checksum".*//') &&
    echo "old: the trials of a search without a race"

# A raced record, with `race` left out, true or false.
mscgym search default.json --quiet --trials 60 --restart >/dev/null
mscgym show default/tiny.jsonl --canonical >default.txt
mscgym search default.json --quiet --trials 24 --restart >/dev/null
sed -i 's|"budget"|"race": true, &|' default.json
mscgym search default.json --quiet --trials 41 >/dev/null
mscgym resume default/tiny.jsonl --quiet --trials 60 >/dev/null
same default
sed -i 's|"race": true|"race": false|' default.json
mscgym search default.json --quiet --trials 70 2>&1

# A dry run says what the race saves, or what it lacks.
sed -i 's|"race": false, ||' default.json
mscgym search default.json --dry-run --restart 2>&1 | grep '^race'
mscgym search batches.json --dry-run --restart 2>&1 | grep '^race'
mscgym search batches.json --dry-run --restart --json 2>/dev/null | jq -c '.[0].estimate | [.race_batch, .race_effort]'
sed -i 's|{"time": "1h"}|{"trials": 24}|' batches.json
mscgym search batches.json --dry-run --restart 2>&1 | grep '^race'
mscgym search counted.json --dry-run --restart 2>&1 | grep '^race'
mscgym search off.json --dry-run --restart 2>&1 | grep "^race" || echo "a search without a race says nothing of one"
