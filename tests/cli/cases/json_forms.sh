# What programs read: every key of a configuration, and an estimate in numbers.
. "$(dirname "$0")/../lib.sh"
# The same keys as for people, in the same order.
diff <(mscgym config | sed -nE 's/^  ([a-z_]+) .*/\1/p') \
    <(mscgym config --json | jq -r '.[].keys[].name') && echo "the same keys"
mscgym config --json | jq -c '.[] | [.section, (.keys | length)]'
mscgym config --json | jq -c '.[].keys[] | select(.name == "parallel" or .name == "verbose" or
    .name == "time" or .name == "channels_last" or .name == "model" or .name == "scale")'
tiny t
diff <(mscgym config --show t.json) <(mscgym config --json t.json) && echo "the same configuration"

mscgym search t.json --dry-run --json >estimate.json
jq -c '.[] | [.entry, (.estimate | keys_unsorted)]' estimate.json
jq -c '.[].estimate | [.space_points, .trials_left, .trials_left_are_exact, .calibration_samples,
    .float_accuracy, .trials_recorded, .trial_s > 0, .left_s > 0, .least_memory_bytes > 0]' estimate.json
mscgym search t.json --quiet >/dev/null
mscgym resume t/tiny.jsonl --trials 20 --dry-run --json | jq -c '.[].estimate | [.trials_recorded, .trials_left > 0]'
toy a 50 | cat
sed -i 's/"budget": {"trials": 50}/"budget": {"time": "1h"}/' a.json
mscgym search a.json --dry-run --json | jq -c '.[].estimate | [.space_points, .record_bytes > 0, .memory_bytes]'
