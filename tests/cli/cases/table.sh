# A search in a table of terms and in one of rows. Both continue from their records, and are refused
# after the table has changed.
. "$(dirname "$0")/../lib.sh"
mkdir in
cat >in/terms.json <<'EOF'
{
  "schema": "mscgym.table.1",
  "tasks": [
    {"name": "conv1", "choices": ["8", "6", "4"]},
    {"name": "conv2", "choices": ["8", "6", "4"]},
    {"name": "head", "choices": ["8", "6", "4"]}
  ],
  "metrics": [
    {"name": "distill_loss",
     "alone": [[0.001, 0.01, 0.2], [0.001, 0.02, 0.1], [0.002, 0.03, 0.5]],
     "pairs": [{"tasks": [0, 1], "values": [[0, 0, 0], [0, 0, 0], [0, 0.01, -0.05]]}]}
  ],
  "costs": [
    {"name": "size_bytes", "unit": "bytes",
     "alone": [[800, 600, 400], [1600, 1200, 800], [80, 60, 40]]}
  ]
}
EOF
# table TABLE TRIALS [MEMBERS]: further members of the environment.
table() {
    cat >in/c.json <<END2
{"workspace": "../out", "verbose": "error",
 "gym": [{"record": "$1.jsonl", "env": {"type": "table", "file": "$1"${3:+, $3}},
          "agent": {"type": "evolutionary", "population": 8},
          "budget": {"trials": $2}, "parallel": 4}]}
END2
}
bound='"bounds": {"size_bytes": {"max": 1900}}'
table terms.json 12 "$bound"
mscgym search in/c.json --quiet
table terms.json 26 "$bound"
mscgym search in/c.json
mscgym verify out/terms.json.jsonl
mscgym envs --check in/c.json | cut -c 1-20
mscgym config --show in/c.json | grep -A 8 '"env"'
# The same values as rows; one row failed and one is missing.
echo "conv1,conv2,head,distill_loss,size_bytes" >in/rows.csv
for a in 8 6 4; do for b in 8 6 4; do for c in 8 6 4; do
    case $a$b$c in
    444) ;;
    448) echo "$a,$b,$c,failed,$((a * 100 + b * 200 + c * 10))" ;;
    *) echo "$a,$b,$c,0.$((30 - a - b - c)),$((a * 100 + b * 200 + c * 10))" ;;
    esac
done; done; done >>in/rows.csv
more='"metrics": ["distill_loss", "size_bytes"], "bounds": {"size_bytes": {"max": 1900}}'
table rows.csv 20 "$more"
mscgym search in/c.json --quiet
(cd out && mscgym resume rows.csv.jsonl --trials 27 --quiet)
mscgym show out/rows.csv.jsonl --canonical | grep -o '"state":"failed".*"reason":"[^"]*"' | sort | uniq -c
mscgym verify out/rows.csv.jsonl | tail -n 1
# With another value it is another search.
sed -i 's/0\.6,/0.7,/; s/0\.8,/0.9,/' in/rows.csv
try mscgym search in/c.json --quiet
try mscgym resume out/rows.csv.jsonl --trials 30 --quiet
# The table is not overwritten by a record.
sed -i 's/"record": "[^"]*"/"record": "..\/in\/rows.csv"/' in/c.json
try mscgym search in/c.json --quiet
table gone.csv 3
try mscgym search in/c.json --quiet
mscgym envs table
