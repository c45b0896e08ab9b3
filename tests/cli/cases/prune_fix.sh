# Pruning with fixed densities, rules by name, densities that remove nothing or all, and the metric
# `command` on pruned models.
. "$(dirname "$0")/../lib.sh"
digits=$FILES/../../../examples/digits

# digits NAME MEMBERS [SECTION [VERBOSE]]: writes NAME.json; MEMBERS are further members of the
# environment.
digits() {
    cat >"$1.json" <<END_OF_CONFIG
{
  "workspace": "$1", "verbose": "${4:-error}", "model": "$digits/digits.onnx",
  "dataset": {"inputs": "$digits/calibration.npz", "batch": 64},
  "${3:-prune}": {"gym": [{"record": "r.jsonl", "env": {$2}, "agent": {"type": "random"},
                           "budget": {"trials": 6}}]}
}
END_OF_CONFIG
}

# weights MODEL: prints the shapes of the model's weights.
weights() {
    mscgym graph "$1" --json | jq -c '[.. | .weights? // empty | .[]? | select(.dtype == "float32").shape]'
}

densities='"choices": [{"density": 1}, {"density": 0.75}, {"density": 0.5}, {"density": 0.25}]'
echo "== fixed, by label, density, and whole; the others by rules"
digits a "$densities, \"fix\": {\"0.*\": \"whole\", \"2.weight\": 0.3}, \"rules\": [
  {\"name\": \"5.*\", \"choices\": [\"0.5\", 0.25]}, {\"name\": \"*\", \"choices\": [\"1\"]}]"
mscgym search a.json >/dev/null
head -n 1 a/r.jsonl | jq -c '.space.tasks, [.space.baselines[] | [.label, .choices]]'
jq -c '.prune[] | [.group, .choice, (.kept | length)]' a/msc_prune.json
weights a/digits.onnx
jq -s -c 'map(select(.kind == "trial").metrics.size_bytes) | unique' a/r.jsonl
mscgym verify a/r.jsonl
mscgym export a/r.jsonl -o a.onnx
cmp a.onnx a/digits.onnx && echo "from the record"

echo "== single weights"
digits s '"choices": [{"density": 1}, {"sparsity": 0}, {"sparsity": 0.5}], "exclude": ["*.bias"],
  "fix": {"5.weight": "sparsity 0.5", "10.weight": "whole"}'
mscgym search s.json >/dev/null
head -n 1 s/r.jsonl | jq -c '[.space.tasks[].name]'
jq -s -c 'map(select(.kind == "trial").metrics | [.size_bytes, .macs]) | unique' s/r.jsonl

echo "== channels and bits"
digits j "\"prune\": {$densities, \"fix\": {\"0.weight\": 0.5, \"2.*\": \"whole\"}}, \"choices\": [{\"bits\": 8}],
  \"target\": \"generic\"" joint
mscgym search j.json >/dev/null
head -n 1 j/r.jsonl | jq -c '[.space.tasks[].name]'
jq -c '.prune[] | [.group, .choice, (.kept | length)]' j/msc_joint.json | head -n 1

echo "== densities that come to nothing"
digits d '"choices": [{"density": 1}, {"density": 0.8}, {"density": 0.05}], "fix": {"5.weight": 0.99}' prune warning
mscgym search d.json 2>&1 >/dev/null | grep density

echo "== what a program says of the model"
cat >bytes.sh <<'END'
#!/bin/sh
wc -c <"$1"
END
chmod +x bytes.sh
digits c "$densities, \"command\": [\"./bytes.sh\", \"{model}\"], \"bounds\": {\"command\": {\"max\": 40000}}"
mscgym search c.json >/dev/null
jq -s -c '[.[] | select(.kind == "trial").metrics | .command - .size_bytes | . > 1000 and . < 2000] | all' c/r.jsonl
head -n 1 c/r.jsonl | jq -c '.space.metrics[] | select(.measured) | [.name, .maximised, .exact]'
try mscgym verify c/r.jsonl
cat >outputs.sh <<'END'
#!/bin/sh
python3 -m zipfile -l "$1" | wc -l
END
chmod +x outputs.sh
digits o "$densities, \"command\": [\"./outputs.sh\", \"{outputs}\"], \"objectives\": [\"command\"]"
mscgym search o.json >/dev/null
jq -s -c '[.[] | select(.kind == "trial").metrics.command] | unique' o/r.jsonl

echo "== what is wrong"
refused() {
    digits r "$1"
    try mscgym search r.json
}
refused "$densities, \"fix\": {\"nobody\": \"whole\"}"
refused "$densities, \"fix\": {\"0.weight\": \"0.6\"}"
refused "$densities, \"fix\": {\"0.weight\": 0}"
refused "$densities, \"fix\": {\"0.weight\": true}"
refused "$densities, \"fix\": {\"*\": \"whole\"}"
refused "$densities, \"fix\": [\"0.weight\"]"
refused "$densities, \"rules\": [{\"name\": \"nobody\", \"choices\": [\"1\"]}]"
refused "$densities, \"rules\": [{\"name\": \"*\", \"choices\": [\"0.6\"]}]"
refused "$densities, \"rules\": [{\"name\": \"*\", \"choices\": []}]"
refused "$densities, \"rules\": [{\"choices\": [\"1\"]}]"
refused "$densities, \"rules\": [{\"name\": \"*\", \"density\": [1]}]"
refused "$densities, \"objectives\": [\"command\"]"
