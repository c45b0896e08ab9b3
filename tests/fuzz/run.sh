#!/bin/bash
# Runs the fuzzers of a build one after the other, and prints a line for each: the number of
# inputs, the processor time, and what was found.
#
#     tests/fuzz/run.sh BUILD SECONDS [NAME...]
#
# BUILD was configured with -DMSC_FUZZ=ON; each fuzzer runs until it has used SECONDS of processor
# time, which takes longer beside other work. Names select fuzzers ("onnx arrays"). Seeds come from tests/fuzz/corpus, from files of this tree, from the program's
# own output and, if it is installed, from Debian's libonnx-testdata. Findings are kept in
# BUILD/fuzz/NAME, the log in BUILD/fuzz/NAME.log; `BUILD/tests/fuzz/fuzz_NAME FILE` runs a
# finding again. Grown corpora are kept in BUILD/fuzz/NAME/corpus for the next run.
# MSC_FUZZ_RUNS=0 runs existing inputs once, without new ones (scripts/coverage). The exit status
# is 1 if anything was found.
set -u
if [ $# -lt 2 ]; then
    sed -n 's/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
build=$(realpath "$1")
seconds=$2
shift 2
tree=$(realpath "$(dirname "$0")/../..")
largest=16384 # bytes of a seed
memory=/dev/shm
[ -d "$memory" ] && [ -w "$memory" ] || memory=${TMPDIR:-/tmp}
work=$(mktemp -d "$memory/msc_fuzz.XXXXXX")
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work" OMP_NUM_THREADS=1 MSC_ONNX_CASES=${MSC_ONNX_CASES:-/usr/share/libonnx-testdata}

# seed NAME [PREFIX]: stores standard input as a seed, after an optional prefix.
seed() {
    local file
    file=$(mktemp "$work/$1/seeds/XXXXXX")
    { printf '%s' "${2:-}" && cat; } >"$file"
    [ "$(stat -c %s "$file")" -le "$largest" ] || rm "$file"
}

models() {
    find "$MSC_ONNX_CASES" -name model.onnx -size -"$largest"c 2>/dev/null
    find "$tree/tests" -name '*.onnx'
}

# Making seeds does not count for coverage.
mscgym() {
    LLVM_PROFILE_FILE=/dev/null "$build/cli/mscgym" "$@"
}

# The quoted words in these sources, as a dictionary for libFuzzer.
words() {
    grep -ohE '"[A-Za-z_][A-Za-z_0-9.]*"' "$@" | sort -u
}

# ---- Seeds ------------------------------------------------------------------------------------

seeds_onnx() {
    models | while read -r model; do
        seed onnx <"$model"
    done
    words "$tree"/graph/onnx/onnx_import*.c >"$work/onnx/dict"
}

seeds_run() {
    models | while read -r model; do
        seed run <"$model"
    done
    words "$tree"/graph/onnx/onnx_import*.c >"$work/run/dict"
}

seeds_graph_json() {
    models | awk 'NR % 4 == 0' | while read -r model; do
        mscgym graph "$model" -o "$work/m.json" >"$work/log" 2>&1 || continue
        { cat "$work/m.json" && printf '\0' && cat "$work/m.safetensors"; } | seed graph_json
    done
    words "$tree"/graph/json_read*.c "$tree"/graph/op*.c >"$work/graph_json/dict"
}

seeds_graph_text() {
    models | awk 'NR % 4 == 1' | while read -r model; do
        mscgym graph "$model" -o "$work/m.msc" >"$work/log" 2>&1 || continue
        seed graph_text <"$work/m.msc"
        { cat "$work/m.msc" && printf '\0' && cat "$work/m.safetensors"; } | seed graph_text
    done
    words "$tree"/graph/text_*.c "$tree"/graph/graph_reader.c "$tree"/graph/op*.{c,def} >"$work/graph_text/dict"
}

# One seed for each rule of the example.
seeds_graph_rules() {
    awk -v folder="$work/graph_rules/seeds" '/^rule/ { n++ } n > 0 { print >(folder "/" n) }' \
        "$tree/examples/rules/common.msc"
    words "$tree"/graph/rules/*.c "$tree"/graph/text_*.c "$tree"/graph/op*.c >"$work/graph_rules/dict"
}

seeds_arrays() {
    local row
    for row in n:npy z:npz s:safetensors i:png i:jpg i:BMP; do
        find "$tree/tests/data" "$tree/examples" -name "*.${row#*:}" | while read -r file; do
            seed arrays "${row%%:*}" <"$file"
        done
    done
    words "$tree"/data/npy_dict.c "$tree"/data/safetensors.c >"$work/arrays/dict"
}

# Models, and importance files in both forms. The decoder is in the corpus.
seeds_gguf() {
    local file
    for file in "$tree"/tests/data/files/{small,importance}.gguf "$tree"/tests/data/files/importance*.dat; do
        seed gguf <"$file"
    done
    words "$tree"/data/gguf*.c "$tree"/graph/gguf/*.c "$tree"/tools/importance.c >"$work/gguf/dict"
}

# The configurations inside the program's test scripts, without the shell lines around them.
configs() {
    cat "$tree/examples/digits/digits.json"
    printf '\0'
    sed -n '/<<.\{0,1\}END/,/^END/{/END/!p;/^END/s/.*/\x00/p}' \
        "$tree"/tests/cli/cases/*.sh "$tree/tests/cli/lib.sh" |
        sed -e 's/\${[^}]*}//g' -e 's/\$[A-Za-z0-9]*/4/g'
}

seeds_config() {
    configs | while IFS= read -r -d '' text; do
        printf '%s' "$text" | seed config
    done
    words "$tree"/config/*.c "$tree"/env/*.c "$tree"/env/*/*.c "$tree"/agents/*.c >"$work/config/dict"
}

# Records of short searches in the toy environment, with corrected checksums ("s") and as they are
# ("r").
seeds_record() {
    local n=0 agent
    for agent in '"random"' '"evolutionary", "population": 4' '"grid_search"'; do
        n=$((n + 1))
        cat >"$work/toy.json" <<END
{"workspace": "w$n", "verbose": "error",
 "gym": [{"record": "toy.jsonl", "agent": {"type": $agent},
          "env": {"type": "toy", "tasks": 3, "choices": 3, "seed": 1,
                  "objectives": ["distill_loss", "size_bytes"]},
          "budget": {"trials": 6}, "parallel": 4}]}
END
        mscgym search "$work/toy.json" --quiet >"$work/log" 2>&1
        seed record s <"$work/w$n/toy.jsonl"
        seed record r <"$work/w$n/toy.jsonl"
    done
    local file
    for file in "$tree"/tests/cli/files/*.jsonl; do
        seed record s <"$file"
        seed record r <"$file"
    done
    words "$tree"/records/*.c >"$work/record/dict"
}

seeds_plans() {
    seed plans t <<'END'
{"schema": "mscgym.strategy.1", "graph": "0123", "weights": "0123456789abcdef0123456789abcdef",
 "edits": [
 {"site": "w", "tensor": "w", "choice": "6 mse", "bits": 6, "low": -31, "high": 31, "axis": 0,
  "scales": [0.5, 0.25, 1, 2], "zero_points": [0, 0, 0, 0]},
 {"site": "m", "tensor": "m", "choice": "4 g3", "bits": 4, "low": -7, "high": 7, "axis": 0,
  "group_size": 3, "group_axes": 1, "scales": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  "zero_points": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]},
 {"site": "x:0-c-conv", "tensor": "x:0", "joints": ["conv"], "choice": "8", "bits": 8, "low": 0,
  "high": 255, "axis": -1, "scales": [0.1], "zero_points": [128]}]}
END
    seed plans t <<'END'
{"schema": "mscgym.strategy.1", "graph": "0123", "weights": "0123456789abcdef0123456789abcdef",
 "edits": [
 {"site": "w", "tensor": "w", "choice": "float16", "type": "float16"}]}
END
    seed plans t <<'END'
{"schema": "mscgym.strategy.1", "graph": "0123", "weights": "0123456789abcdef0123456789abcdef",
 "edits": [{"site": "w", "tensor": "w", "choice": "6 percentile 99 x0.9", "observer": "percentile",
  "percentile": 99, "range_scale": 0.9, "symmetric": true, "bits": 6, "low": -31, "high": 31,
  "axis": 0, "scales": [0.5, 0.25, 1, 2], "zero_points": [0, 0, 0, 0]}]}
END
    seed plans m <<'END'
{"proposals": [{"choices": [2, 1], "parent": 4, "bound": 0.5, "probe": true}, {"choices": [0, 0]}],
 "done": false}
END
    { cat <<'END' && printf '\0{"trial": 0, "state": "pruned", "metrics": {"loss": 0.5}, "reason": "no"}'; } |
{"version": 1, "features": ["elements"], "reference": {"loss": 0, "size": 9}, "tasks": [
  {"name": "a", "choices": ["8", "4"], "dearest_first": [0, 1], "features": [72]},
  {"name": "b", "choices": ["x"], "features": [5]}], "baselines": [{"label": "8", "choices": [0, 0]}],
 "metrics": [{"name": "loss", "unit": "", "help": "it", "maximised": true, "measured": true}],
 "costs": [{"name": "size", "constant": 1, "alone": [[8, 4], [2]],
            "terms": [{"scale": 2, "factors": [{"task": 0, "values": [8, 4]}]}]}]}
END
        seed plans e
    words "$tree"/tools/strategy_json.c "$tree"/agents/process_messages.c \
        "$tree"/env/process_messages.c "$tree"/env/space_json.c >"$work/plans/dict"
}

# Fuzzers whose seeds are all in the corpus.
seeds_kernels() { :; }
seeds_external() { :; }
seeds_attempt() { :; }
seeds_beside() { words "$tree"/results/report*.c "$tree"/records/re*ed.c "$tree"/records/kept*.c >"$work/beside/dict"; }
seeds_program() { words "$tree"/base/program.c >"$work/program/dict"; }
seeds_vulkan_files() { words "$tree"/kernels/vulkan/vk_tuned.c >"$work/vulkan_files/dict"; }
seeds_command() { words "$tree"/cli/cmd_*.c >"$work/command/dict"; }

seeds_table() {
    local files="$tree/tests/env/files"
    { cat "$files/table.json" && printf '\0'; } | seed table
    { cat "$files/rows.json" && printf '\0' && cat "$files/rows.csv"; } | seed table
    { printf '\0' && sed 's/gflops/distill_loss/' "$files/rows.csv"; } | seed table
    printf '\0bits,distill_loss\n8,0.5\n4,failed\n"2",1e-3\n' | seed table
    words "$tree"/env/table_*.c >"$work/table/dict"
}

# ---- Running ----------------------------------------------------------------------------------

fuzz() {
    local name=$1 log="$work/$1/log" kept="$build/fuzz/$1"
    mkdir -p "$work/$name/seeds" "$kept/corpus"
    touch "$work/$name/dict"
    "seeds_$name"
    cp "$tree/tests/fuzz/corpus/$name"/* "$work/$name/seeds/" 2>/dev/null
    if [ "${MSC_FUZZ_RUNS:-}" = 0 ]; then
        "$build/tests/fuzz/fuzz_$name" -runs=0 "$kept/corpus" "$work/$name/seeds" >"$log" 2>&1
        return
    fi
    # libFuzzer rejects an empty dictionary.
    local words=()
    [ ! -s "$work/$name/dict" ] || words=("-dict=$work/$name/dict")
    # libFuzzer stops by the clock, so it is started again until the processor time is used.
    local TIMEFORMAT='%U %S' spent=0 left=$seconds runs=0 more=1 found
    while [ "$left" -gt 0 ] && [ -n "$more" ]; do
        spent=$({ time nice "$build/tests/fuzz/fuzz_$name" -fork=1 -ignore_crashes=1 -ignore_ooms=1 \
            -ignore_timeouts=1 -max_total_time="$left" -rss_limit_mb=2048 -timeout=30 \
            -max_len="$largest" "${words[@]}" -artifact_prefix="$kept/" \
            "$kept/corpus" "$work/$name/seeds" >"$log" 2>&1; } 2>&1 | awk '{ print int($1 + $2) }')
        more=$(sed -n 's/^#\([0-9]*\): cov.*/\1/p' "$log" | tail -1)
        runs=$((runs + ${more:-0}))
        left=$((left - spent))
    done
    found=$(find "$kept" -maxdepth 1 -type f | wc -l)
    echo "$name: $runs runs, $((seconds - left)) s of CPU, $found found$([ "$found" -gt 0 ] && echo " in $kept")"
    [ "$found" -eq 0 ] || cp "$log" "$build/fuzz/$name.log"
    [ -n "$more" ] || tail -n 5 "$log"
    [ -n "$more" ] && [ "$found" -eq 0 ]
}

[ $# -gt 0 ] || set -- onnx external gguf graph_json graph_text graph_rules run kernels arrays config record attempt \
    beside plans program table command vulkan_files
failed=0
for name in "$@"; do
    fuzz "$name" || failed=1
done
exit "$failed"
