# file_bytes is the size of the exported model, but for the metadata that names record and strategy.
. "$(dirname "$0")/../lib.sh"
tiny a '"bounds": {"file_bytes": {"max": 100000}}'
mscgym search a.json --quiet >/dev/null
for trial in 0 1 5; do
    mscgym export a/tiny.jsonl --trial $trial -o $trial.onnx --quiet
    metric=$(jq -r "select(.kind == \"trial\" and .id == $trial) | .metrics.file_bytes" a/tiny.jsonl)
    whole=$(stat -c %s $trial.onnx)
    echo "trial $trial: $((whole - metric > 0 && whole - metric < 300 ? 1 : 0))"
done
