# A record of another search is refused; --restart sets it aside under another name.
. "$(dirname "$0")/../lib.sh"
toy a 8
mscgym search a.json >/dev/null
sed -i 's/"seed": 3/"seed": 4/' a.json
try mscgym search a.json
try mscgym search a.json --restart --quiet | tail -n 1
ls a
try mscgym search a.json --restart --quiet | tail -n 1
ls a
sed -i 's/"population": 8/"population": 9/' a.json
try mscgym search a.json
sed -i 's/"population": 9/"population": 8/; s/"trials": 8/"trials": 10/' a.json
try mscgym search a.json --quiet | tail -n 1
# Keys that only concern files and messages may change.
sed -i 's/"verbose": "error"/"verbose": "critical", "device": "cpu"/' a.json
try mscgym search a.json --quiet | tail -n 1
try mscgym resume nothing.jsonl
printf 'no record\n' >text.jsonl
try mscgym resume text.jsonl
try mscgym show text.jsonl
