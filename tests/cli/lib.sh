# Helpers for the cases, which source this file.

# Runs a command; prints its output, standard error included, and its exit code.
try() {
    "$@" 2>&1
    echo "exit $?"
}

# Names the default target alike on all processors: those without VNNI have one of their own.
default_target() {
    sed 's/onnxruntime_avx2/onnxruntime/g'
}

# close A.npy B.npy: whether two files of float32 have the same values up to rounding. oneDNN may sum in
# another order in an exported model than under a strategy, whose weights are edited when it runs.
close() {
    python3 - "$@" <<'END'
import array, sys
def values(path):
    with open(path, "rb") as file:
        return array.array("f", file.read()[128:])
a, b = map(values, sys.argv[1:])
if len(a) != len(b) or max(abs(x - y) for x, y in zip(a, b)) > 1e-5 * max(map(abs, a)):
    sys.exit(f"{sys.argv[1]} and {sys.argv[2]} differ")
END
}

# toy NAME TRIALS [MEMBERS]: writes NAME.json, a search in the toy environment. MEMBERS are further
# JSON members of the environment.
toy() {
    cat >"$1.json" <<END
{
  "workspace": "$1", "verbose": "error",
  "gym": [{
    "record": "toy.jsonl",
    "env": {"type": "toy", "tasks": 6, "choices": 3, "seed": 1, "interaction": 0.5${3:+, $3}},
    "agent": {"type": "evolutionary", "population": 8},
    "budget": {"trials": $2}, "seed": 3, "parallel": 4
  }]
}
END
}

# tiny NAME [MEMBERS]: writes NAME.json, a search of the tiny network.
tiny() {
    cat >"$1.json" <<END
{
  "workspace": "$1", "verbose": "error", "model": "$FILES/tiny.onnx",
  "dataset": {"inputs": "$FILES/inputs.npz", "labels": "$FILES/labels.npy", "batch": 2,
              "validation": 0.2},
  "quantize": {"target": "generic", "gym": [{
    "record": "tiny.jsonl",
    "env": {"choices": [{"bits": 8}, {"bits": 4}]${2:+, $2}},
    "agent": {"type": "random"},
    "budget": {"trials": 12}, "parallel": 4
  }]}
}
END
}

# killed N FILE TEXT COMMAND...: runs a command and kills it, with its worker process, once FILE has N
# lines with TEXT. A command that ends earlier is not killed.
killed() {
    local n=$1 file=$2 text=$3 parent worker
    shift 3
    "$@" >/dev/null 2>&1 &
    parent=$!
    while kill -0 $parent 2>/dev/null && [ "$(cat "$file" 2>/dev/null | grep -c "$text")" -lt "$n" ]; do
        sleep 0.002
    done
    worker=$(cat /proc/$parent/task/$parent/children 2>/dev/null)
    {
        kill -KILL $worker $parent
        wait $parent
    } 2>/dev/null # the shell's message on the kill
}
