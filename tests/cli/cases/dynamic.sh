# Networks whose branches or lengths depend on input values. The expected outputs are ONNX Runtime's
# (files/make_dynamic.py).
. "$(dirname "$0")/../lib.sh"

# same A.npy B.npy N: compares the last N bytes, which are the elements without the headers.
same() {
    cmp <(tail -c "$3" "$1") <(tail -c "$3" "$2") && echo "$(basename "$1") is as expected"
}

# search NAME MODEL DATA [MEMBERS]: searches MODEL on DATA, with further members of the environment.
search() {
    cp "$FILES/$3.npz" .
    cat >"$1.json" <<END
{
  "workspace": "$1", "verbose": "warning", "model": "$FILES/$2.onnx",
  "dataset": {"inputs": "$3.npz"},
  "quantize": {"target": "generic", "gym": [{
    "record": "r.jsonl",
    "env": {"choices": [{"bits": 8}, {"bits": 4}], "bounds": {"bit_ops_ratio": {"max": 0.5}}${4:+, $4}},
    "agent": {"type": "random"}, "budget": {"trials": 6}, "parallel": 4
  }]}
}
END
    try mscgym search "$1.json" 2>&1 | grep -E '^(warning|mscgym|trials|exit)'
}

# The condition has the same value in all samples: the branch's joints are searched like the network's.
for mode in 0 1; do
    mscgym run "$FILES/branch.onnx" --input x="$FILES/detect_x0.npy" --repeat 0 \
        --input mode="$FILES/branch_mode$mode.npy" --output "m$mode" 2>/dev/null
    same "m$mode/y.npy" "$FILES/branch_y$mode.npy" 12
done
search branch branch branch
mscgym verify branch/r.jsonl 2>/dev/null
grep -o '"site": *"[^"]*"' branch/msc_quantize.json
mscgym run "$FILES/branch.onnx" --input x="$FILES/detect_x0.npy" --repeat 0 \
    --input mode="$FILES/branch_mode0.npy" --strategy branch/msc_quantize.json --output small 2>/dev/null
mscgym run branch/branch.onnx --input x="$FILES/detect_x0.npy" --repeat 0 \
    --input mode="$FILES/branch_mode1.npy" --output exported
cmp -s small/y.npy m0/y.npy || echo "the strategy does something"
ls small exported
# Without a record, --bind names the branch. The exported file equals the search's.
cp "$FILES/branch.onnx" .
try mscgym export --model branch.onnx --strategy branch/msc_quantize.json -o no.onnx
try mscgym export --model branch.onnx --strategy branch/msc_quantize.json --bind moed=0 -o no.onnx
try mscgym export --model branch.onnx --strategy branch/msc_quantize.json --bind mode=0 -o told.onnx
mscgym run told.onnx --input x="$FILES/detect_x0.npy" --repeat 0 --output told \
    --input mode="$FILES/branch_mode1.npy"
cmp told/y.npy exported/y.npy && echo "the exported models agree"
# The condition differs between samples: branches are run, but not searched.
search both branch branch_both
grep -o '"site": *"[^"]*"' both/msc_quantize.json

# Lengths that are known only at run time.
for i in 0 1; do
    mscgym run "$FILES/detect.onnx" --input x="$FILES/detect_x$i.npy" --output "d$i" --repeat 0
    same "d$i/kept.npy" "$FILES/detect_kept$i.npy" "$(($(stat -c %s "d$i/kept.npy") - 128))"
    same "d$i/head.npy" "$FILES/detect_head$i.npy" "$(($(stat -c %s "d$i/head.npy") - 128))"
done
mscgym graph "$FILES/detect.onnx" --placement --device cpu | grep -E '^ *-|joint by joint'
mscgym graph "$FILES/detect.onnx" --placement --device cpu --json | jq -c '.joint_by_joint[0]'
search detect detect detect
mscgym verify detect/r.jsonl 2>/dev/null
grep -o '"site": *"[^"]*"' detect/msc_quantize.json
search head detect detect '"loss_tensors": ["head"]'
search none detect detect_none 2>&1 | grep mscgym

# Values that become constant once lengths are known. A product of two of them is not a site any
# more; a product with one of them has a constant factor that is quantised.
for i in 0 1; do
    mscgym run "$FILES/positions.onnx" --input x="$FILES/positions_x$i.npy" --output "p$i" --repeat 0
    same "p$i/y.npy" "$FILES/positions_y$i.npy" "$((48 + 32 * i))"
done
search positions positions positions
mscgym verify positions/r.jsonl 2>/dev/null
grep -o '"site": *"[^"]*"' positions/msc_quantize.json

# A first axis of steps, not samples. Arrays of full rank are one sample; --bind sets the length.
mscgym run "$FILES/steps.onnx" --input x="$FILES/steps_x.npy" --input h="$FILES/steps_h.npy" \
    --output steps --repeat 0
same steps/y.npy "$FILES/steps_y.npy" 24
mscgym run "$FILES/steps.onnx" --input x="$FILES/steps_x.npy" --input h="$FILES/steps_h.npy" \
    --output bound --repeat 0 --bind T=3
same bound/y.npy "$FILES/steps_y.npy" 24

# A network without inputs, and with nothing to search.
mscgym run "$FILES/fixed.onnx" --output fixed --repeat 0
same fixed/y.npy "$FILES/fixed_y.npy" 12
search none fixed detect
