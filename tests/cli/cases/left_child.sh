# If a program ends but leaves a child that holds its output open, the program is treated as ended.
# Children left by a program that succeeded are not killed.
. "$(dirname "$0")/../lib.sh"
cat >score.sh <<'END'
#!/bin/sh
sleep 300 &
echo $! >>pids
wc -c <"$1"
END
cat >tell.sh <<'END'
#!/bin/sh
sleep 300 &
echo $! >>pids
echo $MSCGYM_EVENT >>told.txt
END
chmod +x score.sh tell.sh
# quick COMMAND...: checks that the command takes less time than a hook's limit.
quick() {
    local began=$SECONDS
    "$@"
    [ $((SECONDS - began)) -lt 50 ] || echo "it took $((SECONDS - began)) s"
}
# A process that was killed counts as gone even if nobody has waited for it yet.
left() {
    local n=0
    for pid in $(cat pids); do
        grep -q '^State:.[^Z]' "/proc/$pid/status" 2>/dev/null && kill $pid 2>/dev/null && n=$((n + 1))
    done
    [ $n -eq $(wc -l <pids) ] && echo "all go on" || echo "of $(wc -l <pids), $n go on"
    rm pids
}
echo "- a metric"
tiny a '"command": {"argv": ["./score.sh", "{model}"], "timeout": "20s"}, "objectives": ["command"]'
quick mscgym search a.json --quiet >result.txt
grep '^trials' result.txt | sed 's/   */  /g'
jq -r 'select(.kind == "trial") | .state' a/tiny.jsonl | sort | uniq -c
left
echo "- hooks"
toy b 60
quick mscgym search b.json --quiet --on-improve ./tell.sh --on-end ./tell.sh >/dev/null
tail -n 2 told.txt
left
echo "- an agent"
cat >agent.sh <<'END'
#!/bin/sh
read init
sleep 300 <&0 &
echo $! >>pids
echo '{}'
exit 3
END
chmod +x agent.sh
toy c 60
sed -i 's/"type": "evolutionary", "population": 8/"type": "process", "command": [".\/agent.sh"]/' c.json
quick try mscgym search c.json --quiet
grep -q '^State:.[^Z]' "/proc/$(cat pids)/status" 2>/dev/null || echo "none is left"
