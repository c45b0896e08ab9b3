# State tensors that are carried from chunk to chunk. The expected outputs are ONNX Runtime's, run
# chunk by chunk (files/make_state.py).
. "$(dirname "$0")/../lib.sh"

# near A.npy B.npy N: compares their last N floats, within 1e-6.
near() {
    paste <(tail -c "$((4 * $3))" "$1" | od -An -v -t f4 -w4) \
        <(tail -c "$((4 * $3))" "$2" | od -An -v -t f4 -w4) |
        awk '{ d = $1 - $2; if (d > 1e-6 || d < -1e-6) n++ } END { print NR " numbers, " n + 0 " differ" }'
}

cp "$FILES/state.onnx" "$FILES/state.npz" .

# run FOLDER [OPTIONS]: runs all chunks in order.
run() {
    local folder=$1
    shift
    mscgym run state.onnx --input gain="$FILES/state_gain.npy" --state h=hn --state c=cn \
        --output "$folder" --repeat 0 --quiet "$@"
}

run all --input x="$FILES/state_x.npy"
for name in y hn cn; do
    near "all/$name.npy" "$FILES/state_$name.npy" "$(test $name = y && echo 36 || echo 30)"
done
# From the state after the first three chunks.
run late --input x="$FILES/state_x_late.npy" --input h="$FILES/state_h_late.npy" \
    --input c="$FILES/state_c_late.npy"
near late/y.npy "$FILES/state_y.npy" 18
# From a zero state the result differs.
run cold --input x="$FILES/state_x_late.npy"
near cold/y.npy "$FILES/state_y.npy" 18

# search NAME STATE MEMBERS ARGUMENTS...: members of the dataset, arguments of the command.
search() {
    cat >"$1.json" <<END
{
  "workspace": "$1", "verbose": "warning", "model": "state.onnx",
  "dataset": {"inputs": "state.npz", "state": $2${3:+, $3}},
  "quantize": {"target": "generic", "gym": [{
    "record": "r.jsonl",
    "env": {"choices": [{"bits": 8}, {"bits": 4}],
            "bounds": {"bit_ops_ratio": {"max": 0.5}, "size_ratio": {"max": 0.9}}},
    "agent": {"type": "random"}, "budget": {"trials": 12}, "parallel": 4
  }]}
}
END
    shift 3
    try mscgym search "$@" 2>&1 | grep -oE '^(warning.*|mscgym.*|trials.*|exit.*|  validation.samples  *[0-9]*)'
}

# Three sequences of four chunks; the last one is for validation.
search whole '{"h": "hn", "c": "cn"}' '"batch": 4, "validation": 0.4' whole.json
mscgym verify whole/r.jsonl 2>/dev/null
grep -o '"site": *"[^"]*"' whole/msc_quantize.json
# Stopped and continued, on one thread: the same lines.
search parts '{"h": "hn", "c": "cn"}' '"batch": 4, "validation": 0.4' parts.json --trials 5 --threads 1
try mscgym search parts.json --threads 2 2>&1 | grep -E '^(trials|exit)'
cmp <(mscgym show whole/r.jsonl --canonical | tail -n +2) \
    <(mscgym show parts/r.jsonl --canonical | tail -n +2) && echo "the records agree"
# The exported model processes chunks like the original.
run found --input x="$FILES/state_x.npy" --strategy whole/msc_quantize.json
mscgym run whole/state.onnx --input gain="$FILES/state_gain.npy" --state h=hn --state c=cn \
    --input x="$FILES/state_x.npy" --output exported --repeat 0 --quiet
near found/y.npy exported/y.npy 36
cmp -s found/y.npy all/y.npy || echo "the strategy does something"
# Without a length, all samples are one sequence.
search one '{"h": "hn", "c": "cn"}' '"samples": 5' one.json
grep -o '"batch":[0-9]*' one/r.jsonl

search bad '{"h": "hx"}' '"batch": 4' bad.json
search bad '{"k": "hn"}' '"batch": 4' bad.json
search bad '{"h": "y", "c": "cn"}' '"batch": 4' bad.json
search bad '["h"]' '"batch": 4' bad.json
try run bad --input x="$FILES/state_x.npy" --state h

# An output that comes from a branch keeps its name, however the branch is decided.
mscgym run "$FILES/state_branch.onnx" --input x="$FILES/state_branch_x.npy" --bind mode=1 \
    --input mode="$FILES/state_branch_mode.npy" --state h=hn --output branch --repeat 0 --quiet
near branch/hn.npy "$FILES/state_branch_hn.npy" 6
mscgym export --model "$FILES/state_branch.onnx" --bind mode=1 -o taken.onnx
mscgym run taken.onnx --input x="$FILES/state_branch_x.npy" --state h=hn --output taken \
    --input mode="$FILES/state_branch_mode.npy" --repeat 0 --quiet
near taken/hn.npy "$FILES/state_branch_hn.npy" 6
