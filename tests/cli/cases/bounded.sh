# Stopping trials early changes the cost of a search, not its result. Each agent runs with and
# without bounds on trials; points and winners must agree. Records with stopped trials are also cut,
# continued and verified.
. "$(dirname "$0")/../lib.sh"

# points NAME: the points of a record, in order. winner NAME: its winner and metrics.
points() { grep '^{"kind":"trial"' "$1/tiny.jsonl" | sed 's/.*"choices":\(\[[^]]*\]\).*/\1/'; }
winner() { mscgym show "$1/tiny.jsonl" --best --json | tr -d ' \n' | sed 's/.*"winner"://; s/"examined".*//'; }

# compare NAME AGENT BOUNDS: runs a search with and without stopping trials, and compares them.
compare() {
    for bounded in true false; do
        tiny "$1_$bounded" "\"bounds\": $3"
        sed -i -e "s|{\"type\": \"random\"}|{$2, \"bounded\": $bounded}|" \
            -e 's|"budget": {"trials": 12}|"budget": {"trials": 400}|' "$1_$bounded.json"
        mscgym search "$1_$bounded.json" --quiet >"$1_$bounded.txt" || return
    done
    points "$1_true" | cmp - <(points "$1_false") && echo "$1: the same points"
    [ "$(winner "$1_true")" = "$(winner "$1_false")" ] && echo "$1: the same winner"
    grep -q '"state":"pruned"' "$1_true/tiny.jsonl" && echo "$1: trials were stopped"
    grep -q '"state":"pruned"' "$1_false/tiny.jsonl" && echo "$1: trials were stopped without bounds"
}

compare greedy '"type": "grid_search", "mode": "greedy"' '{"size_ratio": {"max": 0.24}}'
compare lowest '"type": "grid_search", "mode": "greedy", "changes": "all"' '{}'
compare per_task '"type": "grid_search"' '{}'
compare full '"type": "grid_search", "mode": "full"' '{"size_ratio": {"max": 0.24}}'
compare evolution '"type": "evolutionary", "population": 4' '{}'
for name in greedy evolution; do
    mscgym verify ${name}_true/tiny.jsonl --quiet >verified.txt && echo "$name: verified"
    mscgym show ${name}_true/tiny.jsonl --canonical >whole.txt
    for trials in 5 9 20; do
        mscgym search ${name}_true.json --quiet --restart --trials $trials >/dev/null
        mscgym resume ${name}_true/tiny.jsonl --quiet --trials 400 >/dev/null
        mscgym show ${name}_true/tiny.jsonl --canonical | cmp - whole.txt && echo "$name: the same again"
    done
done
