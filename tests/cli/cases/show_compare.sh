# Comparing records. Expected values are computed by jq from their lines.
. "$(dirname "$0")/../lib.sh"
bounds='"bounds": {"size_ratio": {"max": 0.08}}'
slow='"delay_us": 300' # so that a search takes some time
toy a 120 "$slow, $bounds"
toy b 40 "$slow, $bounds"
sed -i 's/"type": "evolutionary", "population": 8/"type": "random"/' b.json
objectives='"objectives": ["distill_loss", "size_bytes"]'
toy c 60 "$slow, $objectives"
toy d 30 "$slow, $objectives"
sed -i 's/"type": "evolutionary", "population": 8/"type": "random"/' d.json
for name in a b c d; do mscgym search $name.json --quiet >/dev/null; done
untimed() {
    sed -E '/^  seconds /d; /after N seconds/,/^  at the end/d'
}
mscgym show a/toy.jsonl b/toy.jsonl | untimed
mscgym show a/toy.jsonl b/toy.jsonl --best | sed -n '/^winners/,$p'
mscgym show c/toy.jsonl d/toy.jsonl --pareto | sed -n '/^common front/,$p'

echo "== as jq has it"
mscgym show a/toy.jsonl b/toy.jsonl --json >ab.json
mscgym show c/toy.jsonl d/toy.jsonl --json >cd.json
best='map(select(.kind == "trial" and .state == "complete"))'
for n in 10 30 100; do # the best value after n trials
    for file in a b; do
        jq -s --argjson n $n "if (map(select(.kind == \"trial\")) | length) < \$n then null else
            $best | map(select(.id < \$n).metrics.distill_loss) | min end" $file/toy.jsonl
    done | jq -s -c . | cmp - <(jq -c ".best_over_trials[] | select(.trials == $n).values" ab.json) &&
        echo "$n trials"
done
jq -c '.best_over_time[] | select(.seconds).seconds' ab.json | while read -r seconds; do
    for file in a b; do
        jq -s --argjson s "$seconds" "$best |
            map(select(.measured.elapsed_s <= \$s).metrics.distill_loss) | min" $file/toy.jsonl
    done | jq -s -c . | cmp - <(jq -c --argjson s "$seconds" \
        '.best_over_time[] | select(.seconds == $s).values' ab.json) || echo "$seconds s differ"
done
for file in a b; do
    jq -s "$best | map(.metrics.distill_loss) | min" $file/toy.jsonl
done | jq -s -c . | cmp - <(jq -c '.best_over_trials[-1].values' ab.json) && echo "in the end"
for file in a b; do
    jq -s 'map(select(.kind == "trial").measured.elapsed_s) | max' $file/toy.jsonl
done | jq -s min | cmp - <(jq '.best_over_time[-2].seconds' ab.json) && echo "at the end of the quickest"
plan() { # plan RECORD: the choices of the best trial
    jq -s "(.[0].space.tasks | map(.choices)) as \$labels | $best | min_by(.metrics.distill_loss) |
        [.choices, \$labels] | transpose | map(.[0] as \$i | .[1][\$i])" "$1"
}
jq -s -c transpose <(plan a/toy.jsonl) <(plan b/toy.jsonl) |
    cmp - <(jq -c '.winners.tasks | map(.choices)' ab.json) && echo "winners"
jq -s 'transpose | map(select(.[0] == .[1])) | length' <(plan a/toy.jsonl) <(plan b/toy.jsonl) |
    cmp - <(jq .winners.n_equal ab.json) && echo "so many alike"
for file in a b; do head -1 $file/toy.jsonl; done | jq -s 'map(.config)' |
    jq -c '. as [$a, $b] | ([$a, $b] | map([paths(type != "object" and type != "array")]) | add | unique |
        map(select(. as $p | ($a | getpath($p)) != ($b | getpath($p))))) |
        map(map(if type == "number" then "[\(.)]" else ".\(.)" end) | join("") | ltrimstr(".")) | sort' |
    cmp - <(jq -c '[.differences[].key] | sort' ab.json) && echo "configurations"
front() { # front RECORD...: the points that no other dominates
    jq -s -c "$best | map([.metrics.distill_loss, .metrics.size_bytes]) | unique | . as \$all |
        map(select(. as \$p | \$all | all(. == \$p or .[0] > \$p[0] or .[1] > \$p[1])))" "$@"
}
front c/toy.jsonl d/toy.jsonl | jq length | cmp - <(jq .joint_front cd.json) && echo "a joint front"
for i in 0 1; do
    record=$(jq -r ".records[$i].record" cd.json)
    front "$record" | cmp - <(jq -c ".records[$i].front |
        map([.metrics.distill_loss, .metrics.size_bytes])" cd.json) && echo "the front of $record"
    jq -s -c '.[0] as $joint | .[1] | map(select(. as $p | $joint | any(. == $p)))' \
        <(front c/toy.jsonl d/toy.jsonl) <(front "$record") |
        cmp - <(jq -c ".records[$i].front | map(select(.on_joint_front)) |
            map([.metrics.distill_loss, .metrics.size_bytes])" cd.json) && echo "and of that"
done

echo "== as CSV"
mscgym show a/toy.jsonl b/toy.jsonl --csv >ab.csv
grep -vE 'seconds|elapsed' ab.csv | head -30
jq -r '.best_over_trials[] | "best after trials,\(.trials // "end"),\(.values | map(. // "") | join(","))"' ab.json |
    cmp - <(grep '^best after trials' ab.csv) && echo "the same"
mscgym show c/toy.jsonl --csv | grep -c '^front'
# A result that the first record lacks.
toy w 20 "$slow, $bounds"
mscgym search w.json --warm-from b/toy.jsonl --quiet >/dev/null
mscgym show b/toy.jsonl w/toy.jsonl --csv | grep '^result,\(trials\|told\)'

echo "== what cannot be compared"
tiny t
mscgym search t.json --quiet >/dev/null
mscgym show a/toy.jsonl t/tiny.jsonl | sed -n '/^note/p; /^winners/,/task_1/p'
mscgym show a/toy.jsonl c/toy.jsonl | grep '^note'
mscgym show c/toy.jsonl a/toy.jsonl --pareto | grep '^common front'
head -1 a/toy.jsonl >empty.jsonl
mscgym show empty.jsonl b/toy.jsonl | sed -n '/winner  /p; /at the end/p; /^winners/p'
try mscgym show a/toy.jsonl b/toy.jsonl --top 3
try mscgym show a/toy.jsonl b/toy.jsonl --canonical
try mscgym show a/toy.jsonl b/toy.jsonl --csv --json
try mscgym show a/toy.jsonl none.jsonl
try mscgym show a/toy.jsonl a.json
try mscgym show

echo "== a trial that is left out, and names"
toy f 20 "$bounds"
sed -i 's/"agent": .*/"agent": {"type": "random"},/' f.json
mkdir f
cp "$FILES/flipped.jsonl" f/toy.jsonl
mscgym search f.json --quiet >/dev/null 2>&1
mscgym show f/toy.jsonl b/toy.jsonl --json |
    jq '.best_over_trials[-1].values[0] == .records[0].winner.metrics.distill_loss'
mscgym show f/toy.jsonl b/toy.jsonl --json | jq '.best_over_trials[-1].values[0]' |
    jq -s '.[0] > .[1]' - <(jq -s "$best | map(.metrics.distill_loss) | min" f/toy.jsonl)
cp b/toy.jsonl $'b/\e]0;x\a<b>,"\n.jsonl'
mscgym show a/toy.jsonl $'b/\e]0;x\a<b>,"\n.jsonl' | sed -n 2,3p
mscgym show a/toy.jsonl $'b/\e]0;x\a<b>,"\n.jsonl' --csv | head -2 | LC_ALL=C tr -d '\n -~' | wc -c
