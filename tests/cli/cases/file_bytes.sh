# The metric file_bytes equals the size of the exported model without the metadata that names its
# record and strategy.
. "$(dirname "$0")/../lib.sh"
tiny a '"bounds": {"file_bytes": {"max": 100000}}'
mscgym search a.json --quiet >/dev/null
for trial in 0 1 5; do
    mscgym export a/tiny.jsonl --trial $trial -o $trial.onnx --quiet
    metric=$(jq -r "select(.kind == \"trial\" and .id == $trial) | .metrics.file_bytes" a/tiny.jsonl)
    whole=$(stat -c %s $trial.onnx)
    echo "trial $trial: $((whole - metric > 0 && whole - metric < 300 ? 1 : 0))"
done
# The metric is listed by `envs` and in the record's space, which lacks the metrics of commands, of the latency and of
# tokens.
mscgym envs quantize --json |
    jq '.[].metrics | map(del(.help) | select(.name | test("^latency|^command$|^top1_kept$|^cross_entropy$") | not))' >listed
head -1 a/tiny.jsonl | jq '.space.metrics' | cmp - listed && echo "listed"
mscgym envs quantize | grep -A 2 '^  metrics'
