# --on-improve and --on-end run programs. Whatever these do, the search gives the same record.
. "$(dirname "$0")/../lib.sh"
bounds='"bounds": {"size_ratio": {"max": 0.08}}'
cat >tell.sh <<'END'
#!/bin/sh
{ echo "$*"; env | grep ^MSCGYM_ | grep -v "ELAPSED\|RUNTIME" | sort; } >>told.txt
echo "this goes nowhere"
END
chmod +x tell.sh
toy plain 60 "$bounds"
toy a 60 "$bounds"
mscgym search plain.json >/dev/null
try mscgym search a.json --quiet --on-improve '["./tell.sh", "a word", "$HOME; no shell"]' --on-end ./tell.sh | tail -1
echo "the first, the last and the end:"
sed -n '1,/^MSCGYM_VALUE/p' told.txt | grep -v 'TRIAL\|VALUE\|LOSS'
tac told.txt | sed -n '/EVENT=improve/q;p' | tac | sed '1,/VALUE/{/VALUE/!d;}'
same() { cmp <(mscgym show plain/toy.jsonl --canonical | tail -n +2) <(mscgym show "$1/toy.jsonl" --canonical | tail -n +2) && echo "the same record"; }
same a
# A resumed search does not report earlier improvements again.
rm told.txt
mscgym resume a/toy.jsonl --trials 61 --on-improve ./tell.sh >/dev/null
cat told.txt 2>/dev/null
# Programs that fail, hang or do not exist.
toy b 60 "$bounds"
toy c 60 "$bounds"
try mscgym search b.json --on-improve '["sh", "-c", "exit 3"]' --on-end ./nothing 2>&1 | grep warning | sort -u
same b
mscgym search c.json --on-improve '["sh", "-c", "echo $$ >>pids; exec sleep 1000"]' 2>&1 | grep -c '^warning'
same c
kill -0 $(cat pids) 2>/dev/null || echo "none is left"
# Hook commands that are invalid JSON, or not a list of strings.
try mscgym search a.json --on-end '["sh", 3]' 2>&1 | tail -2
try mscgym search a.json --on-improve '["sh"' 2>&1 | tail -2
