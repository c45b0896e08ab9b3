# External text that is not UTF-8, or contains NUL, is refused with its place. More cases are in
# tests/long/check_text.py.
. "$(dirname "$0")/../lib.sh"
table() { # table NAME TEXT: searches a table with this text, in the syntax of printf
    printf "$2" >"$1.csv"
    echo "{\"workspace\": \"$1\", \"gym\": [{\"env\": {\"type\": \"table\", \"file\": \"$1.csv\"}, \"budget\": {\"trials\": 2}}]}" >"$1.json"
    try mscgym search "$1.json" --quiet
}
table latin_1 'a,distill_loss\nsch\366n,1\n'
table surrogate 'a,distill_loss\n"x\nx\355\240\200",1\n'
table nul 'a,distill_loss\nx,8\0zzz\n'
table utf_16 '\377\376a\0,\0'
table mac 'a,distill_loss\rx,1\r'
table mark '\357\273\277a,distill_loss\r\nsch\303\266n,1\r\nx,2\r\n' | grep trial
echo "- JSON"
printf '{"workspace": "\351"}' >config.json
try mscgym search config.json
echo "- a model"
sed 's/conv\.weight/conv.weigh\xff/g' "$FILES/tiny.onnx" >model.onnx
try mscgym graph model.onnx
echo "- a program"
tiny a '"command": ["printf", "8\\000zzz", "{model}"], "objectives": ["command"]'
mscgym search a.json --quiet >/dev/null 2>&1
jq -r 'select(.kind == "trial") | .reason' a/tiny.jsonl | sort | uniq -c
echo "- an argument"
try mscgym show $'caf\xe9.jsonl'
