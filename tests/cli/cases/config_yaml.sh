# A configuration in YAML reads as the same configuration in JSON; errors name line and column.
cat >c.yaml <<'END'
# comment
gym:
  - env: &toy {type: toy, tasks: 4}
    budget: {time: 1h30m, trials: 20}   # text and a number
    seed: "12345678901234567"
  - record: other.jsonl
    env: *toy
    agent:
      type: random
    deliver: false
    trial_time: 1.5e1
verbose: warning
log_file: ""
END
cat >c.json <<'END'
{"gym": [{"env": {"type": "toy", "tasks": 4}, "budget": {"time": "1h30m", "trials": 20}, "seed": "12345678901234567"},
         {"record": "other.jsonl", "env": {"type": "toy", "tasks": 4}, "agent": {"type": "random"}, "deliver": false,
          "trial_time": 15}],
 "verbose": "warning", "log_file": ""}
END
mscgym config --show c.yaml >yaml.out
mscgym config --show c.json | cmp - yaml.out && echo "equal"
sed 's/trials: 20/trials: 3/' c.yaml >short.yml
mscgym search --quiet short.yml >/dev/null && mscgym search --quiet short.yml | grep record: && ls msc_workspace

refused() {
    cat >wrong.yaml
    mscgym config --show wrong.yaml 2>&1
}
printf 'gym:\n  - env: {type: toy\n' | refused
printf 'gym:\n\t- a\n' | refused
printf 'gym: []\ngym: []\n' | refused
printf '? [a]\n: 1\n' | refused
printf 'a: &a [*a]\n' | refused
printf 'gym: [{env: {type: toy, tasks: yes}}]\n' | refused
printf 'gym: [{env: {type: toy, tusks: 4}}]\n' | refused
printf -- '---\nverbose: info\n---\nverbose: info\n' | refused
printf '# nothing\n' | refused
printf '\xff\xfe\xfd' | refused
printf 'a: "x\\0y"\n' | refused
{
    printf 'a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n'
    for i in 1 2 3 4 5 6 7 8; do
        printf 'a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n' $i $i \
            $((i - 1)) $((i - 1)) $((i - 1)) $((i - 1)) $((i - 1)) $((i - 1)) $((i - 1)) $((i - 1)) $((i - 1)) $((i - 1))
    done
} | refused
exit 0
