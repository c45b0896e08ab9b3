# A configuration in TOML reads as the same configuration in JSON; errors name line and column.
cat >c.toml <<'END'
# A comment ................................................................................
verbose = "warning"
log_file = ''

[[gym]]
env = {type = "toy", tasks = 4}
budget = {time = "1h30m", trials = 2_0}   # text and a number
seed = "12345678901234567"

[[gym]]
record = "other.jsonl"
agent.type = "random"
deliver = false
trial_time = 1.5e1
[gym.env]
type = """toy"""
tasks = 0x4
END
cat >c.json <<'END'
{"gym": [{"env": {"type": "toy", "tasks": 4}, "budget": {"time": "1h30m", "trials": 20}, "seed": "12345678901234567"},
         {"record": "other.jsonl", "env": {"type": "toy", "tasks": 4}, "agent": {"type": "random"}, "deliver": false,
          "trial_time": 15}],
 "verbose": "warning", "log_file": ""}
END
mscgym config --show c.toml >toml.out
mscgym config --show c.json | cmp - toml.out && echo "equal"
sed 's/trials = 2_0/trials = 3/' c.toml >short.toml
mscgym search --quiet short.toml >/dev/null && mscgym search --quiet short.toml | grep record: && ls msc_workspace
# Keys keep the order of the file, as the order of bindings and bounds is shown.
printf 'gym = [{env = {type = "toy"}}]\n[bind]\nZ = 1\nA = 2\nM = 3\n' >order.toml
mscgym config --show order.toml | jq -c .bind

mkdir check
printf 'gym = [{env = {type = "toy"}}]\n' >check/c.toml
mscgym envs --check check/c.toml | tail -1

# What init writes in TOML is what it writes in YAML.
cp "$FILES/../../../examples/digits/"{digits.onnx,calibration.npz,calibration_labels.npy} .
# A name may hold control characters that TOML refuses.
cp digits.onnx $'a\x7f\xc2\x85.onnx'
mscgym init --json $'a\x7f\xc2\x85.onnx' --inputs calibration.npz -o odd.toml >/dev/null &&
    mscgym config --show odd.toml | jq -ac .model
rm a*.onnx odd.toml
for form in toml yaml; do
    mscgym init digits.onnx --inputs calibration.npz --labels calibration_labels.npy --target onnxruntime \
            -o "init.$form" --json |
        jq -r .config
    mscgym config --show "init.$form" >"init.$form.json"
done
cmp init.toml.json init.yaml.json && echo "equal"
sed -n '/^\[\[/,$p' init.toml

refused() {
    cat >wrong.toml
    mscgym config --show wrong.toml 2>&1
}
# What the library says after the place is its own.
refused_by_library() {
    refused | sed 's/\(wrong.toml:[0-9]*:[0-9]*:\) .*/\1 .../'
}
printf 'gym = [{env = {type = "toy"\n' | refused_by_library
printf 'gym = [] \n gym = []\n' | refused_by_library
printf '[bind]\nH = 1\nH = 2\n' | refused_by_library
printf '[bind]\n[bind]\n' | refused_by_library
printf 'model = "m\xff"\n' | refused_by_library
printf '\xff\xfe\xfd' | refused_by_library
printf 'model = "a\0b"\n' | refused_by_library
printf 'model =\n' | refused_by_library
printf '[[[\n' | refused_by_library
printf 'a = %0300d' 0 | tr 0 '[' | refused_by_library
printf 'gym = [{env = {type = "toy", tasks = "yes"}}]\n' | refused
printf 'gym = [{env = {type = "toy", tusks = 4}}]\n' | refused
printf '# nothing\n' | refused
printf 'model = "x\\u0000y"\n' | refused
printf '"a\\u0000b" = 1\n' | refused
printf 'log_every = nan\n' | refused
printf 'log_every = -inf\n' | refused
printf 'log_every = 1e999\n' | refused_by_library
printf 'verbose = "info"\nlog_every = 9007199254740993\n' | refused
printf 'log_every = 9223372036854775808\n' | refused_by_library
printf 'log_every = 2026-11-30\n' | refused
printf 'log_every = 07:30:00\n' | refused
printf '[gym]\nx = [1, 2026-11-30T07:30:00Z]\n' | refused
printf 'a%0100000d = 1\n' 0 | sed 's/0/.a/g' | refused
printf 'x = 1\n[a%0100000d]\n' 0 | sed 's/0/.a/g' | refused
# Dots in text and in comments are not those of a key, wherever the text ends.
dots=$(printf '%0100d' 0 | tr 0 .)
keys=$(printf '%0100d' 0 | sed 's/0/.a/g')
printf '# %s\nmodel = "%s\\"%s"\nlog_file = """\n%s\\""""""\nverbose = 3\n' "$dots" "$dots" "$dots" "$dots" | refused
printf 'x = ["", """\n"\\""""", {a%s = 1}]\n' "$keys" | refused
printf "x = ['\\\\\\\\', ''''a'''', {a%s = 1}]\n" "$keys" | refused
printf 'a = {%s}' "$(printf '%0250d' 0 | sed 's/0/a.a.a = {/g')$(printf '%0250d' 0 | tr 0 '}')" | refused
printf 'a = [%0999999d]' 0 | sed 's/0/0,/g' | refused
printf 'a = "%04200000d"' 0 | refused
mscgym config --show no.toml 2>&1
exit 0
