# An agent program may take longer than `quiet_time` for one answer or many; only its `timeout`
# limits it. A second signal stops the search without waiting for it.
. "$(dirname "$0")/../lib.sh"
cat >agent.sh <<'END'
# agent.sh INIT ASK TELL: takes this many seconds for each answer. It proposes points in order.
n=0
think() {
    [ "$1" = 0 ] || { : >busy; sleep "$1"; }
}
while read -r request; do
    case $request in
    *'"method":"init"'*) think "$1"; echo '{}' ;;
    *'"method":"ask"'*)
        think "$2"
        proposals=
        for _ in $(seq 16); do
            n=$((n + 1))
            proposals+=${proposals:+,}'{"choices":['$((n % 3)),$((n / 3 % 3)),$((n / 9 % 3)),0,0,0']}'
        done
        echo '{"proposals":['$proposals']}'
        ;;
    *'"method":"tell"'*) think "$3"; echo '{}' ;;
    *) exit ;;
    esac
done
END
# slow NAME INIT ASK TELL [KEYS]: a search with this agent and further keys.
slow() {
    toy "$1" 16
    sed -i 's|"agent": .*|"agent": {"type": "process", "timeout": 60,\n              "command": ["bash", "agent.sh", "'"$2\", \"$3\", \"$4"'"]},|
        s|"parallel": 4|"parallel": 16'"${5:+, $5}"'|' "$1.json"
}
quiet='"quiet_time": 1.5'
slow a 3 0 0 "$quiet"
try mscgym search a.json | grep '^trials\|^exit'
# The tells of a round take 3.2 s together; `timeout` limits each one. A warm start repeats them all.
slow b 0 0 0.2 "$quiet"
sed -i 's/"timeout": 60/"timeout": 1.5/' b.json
try mscgym search b.json | grep '^trials\|^exit'
sed -i 's/"trials": 16/"trials": 17/' b.json
try mscgym search b.json --warm-start | grep '^trials\|^exit'

# stop NAME: sends SIGINT twice while the agent is busy.
stop() {
    rm -f busy
    mscgym search "$1.json" >stopped.txt 2>&1 &
    search=$!
    while [ ! -e busy ]; do sleep 0.01; done
    kill -INT $search
    sleep 0.2
    kill -INT $search
    wait $search
    echo "exit $?"
    grep '^ended\|^mscgym\|resume' stopped.txt
}
# While it starts, while it proposes, and while it observes a round.
slow c 50 0 0
stop c
slow d 0 50 0
stop d
slow e 0 0 50
stop e
