# Helpers of the cases. Sourced.

# Runs a command and shows what it says and its exit code.
try() {
    "$@" 2>&1
    echo "exit $?"
}

# toy NAME TRIALS [more of the environment]: a search in the toy environment.
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

# tiny NAME [more of the environment]: a search of the tiny network.
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
