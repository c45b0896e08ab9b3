# The same search twice, in folders of different depth: all files are equal except for measured
# values in records.
. "$(dirname "$0")/../lib.sh"
begin() { # begin FOLDER: makes the folder with its inputs and a configuration
    mkdir -p "$1"
    cp "$FILES/tiny.onnx" "$FILES/inputs.npz" "$FILES/labels.npy" "$1"
    cat >"$1/a.json" <<'END'
{
  "workspace": "out", "verbose": "error", "model": "tiny.onnx",
  "dataset": {"inputs": "inputs.npz", "labels": "labels.npy", "batch": 2, "validation": 0.2},
  "quantize": {"gym": [
    {"record": "first.jsonl", "env": {"choices": [{"bits": 8}, {"bits": 4}]},
     "agent": {"type": "random"}, "budget": {"trials": 6}, "parallel": 4, "baseline": "greedy"},
    {"record": "second.jsonl", "env": {"choices": [{"bits": 8}, {"bits": 6}], "include": ["fc*"]},
     "agent": {"type": "random"}, "budget": {"trials": 2}, "parallel": 4}
  ]}
}
END
}
begin one
begin two/deeper
(cd one && mscgym search a.json >result.txt && mscgym export out/first.jsonl -o out/export.onnx)
sleep 1.1 # so that the second record begins in another second
(cd two/deeper && mscgym search a.json >result.txt &&
    mscgym export out/first.jsonl -o out/export.onnx)
for file in one/out/*; do
    other=two/deeper/out/$(basename "$file")
    case $file in
    *.jsonl) cmp <(mscgym show "$file" --canonical) <(mscgym show "$other" --canonical) ;;
    *) cmp "$file" "$other" ;;
    esac && basename "$file"
done
diff <(ls one/out) <(ls two/deeper/out)
cmp one/result.txt two/deeper/result.txt

# A model names its record by the checksum of the record's first canonical line.
sum=$(mscgym show one/out/first.jsonl --canonical | head -n 1 | sed 's/.*"checksum":"\([^"]*\)".*/\1/')
grep -c "$sum" one/out/export.onnx
