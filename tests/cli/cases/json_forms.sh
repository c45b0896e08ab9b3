# JSON output: every key of a configuration, and estimates as numbers.
. "$(dirname "$0")/../lib.sh"
# The same keys as in the text, in the same order.
diff <(mscgym config | sed -nE 's/^  ([$a-z_]+) .*/\1/p') \
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

# docs/json.md and docs/record.md describe every printed key; names of metrics are not keys.
docs=$(dirname "$FILES")/../../docs
named() {
    mscgym "$@" --json --quiet | tee -a said.json | jq -r 'del(.. | .metrics?, .best_metrics?) | [paths[] | strings] | unique[]' |
        while read -r key; do
            grep -qF "\`$key\`" "$docs/json.md" "$docs/record.md" || echo "$1: $key is not described"
        done
}
inputs="--inputs $FILES/inputs.npz"
named search t.json --dry-run
named watch t/tiny.jsonl
named verify t/tiny.jsonl --trials 0-2
named export t/tiny.jsonl -o t.onnx
named quantize "$FILES/tiny.onnx" $inputs -o q.onnx --target generic
named run "$FILES/tiny.onnx" $inputs -o y.npz
named run "$FILES/tiny.onnx" --input x="$FILES/x.npy"
named bench "$FILES/tiny.onnx" --runtime cpu --rounds 2
named track "$FILES/tiny.onnx" t.onnx $inputs
for what in sites channels placement; do
    named graph "$FILES/tiny.onnx" --$what
done
named devices
named --version
named salvage t/tiny.jsonl -o t/saved.jsonl
for list in config envs agents; do
    mscgym $list --json | jq -r '.[] | (if .keys then keys[], (.keys[] | keys[]) else keys[], (.params[] | keys[]) end)' | sort -u |
        while read -r key; do grep -qF "\`$key\`" "$docs/json.md" || echo "$list: $key is not described"; done
done
mscgym agents --check random --json --quiet | jq -r '.[] | keys[]' | sort -u |
    while read -r key; do grep -qF "\`$key\`" "$docs/json.md" || echo "agents --check: $key is not described"; done
jq -s length said.json
