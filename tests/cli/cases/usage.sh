# An invalid command line is reported in one line, with exit code 2.
. "$(dirname "$0")/../lib.sh"
try mscgym serach x.json
try mscgym frobnicate
try mscgym search
try mscgym search a.json b.json
try mscgym search a.json --trails 5
try mscgym search a.json --trials
try mscgym search a.json --trials many
try mscgym search a.json --trials=-3
try mscgym search a.json --time soon
try mscgym search a.json --memory lots
try mscgym search a.json --bind N
try mscgym search a.json --dry-run=yes
try mscgym search a.json --baseline best
try mscgym search a.json -x
try mscgym show --top 3
try mscgym export
try mscgym export -o x.onnx
try mscgym export a.jsonl -o x.onnx --model m.onnx
try mscgym run
try mscgym agents evolutonary
try mscgym envs toys
try mscgym envs foo
try mscgym agents foo
try mscgym graph model.onnx --sites --prototxt
try mscgym search a.json --port 8080
try mscgym resume a.jsonl --worker-program ./mscgym
try mscgym report a.jsonl --port 8080
try mscgym run a.onnx --input x=x.npy --samples 3
