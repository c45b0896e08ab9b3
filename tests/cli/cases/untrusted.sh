# A record may name a library or a program. It is run only with --allow-plugins.
. "$(dirname "$0")/../lib.sh"
mkdir bin
cat >bin/agent.sh <<END2
#!/bin/sh
touch "$PWD/started"
exec python3 "$EXAMPLES/random_agent.py"
END2
chmod +x bin/agent.sh
started() {
    [ -e started ] && echo "(started)"
    rm -f started
}
toy agent 12
sed -i 's|"agent": .*|"agent": {"type": "process", "command": ["bin/agent.sh"]}, "folder": ".",|' agent.json
toy env 12
sed -i 's|"env": .*|"env": {"type": "./coin.so"},|; s|"agent": .*|"agent": {"type": "random"},|' env.json
cp "$COIN" coin.so

echo "== a configuration is trusted"
for name in agent env; do
    mscgym search $name.json --quiet | sed -n 's/^trials: //p'
    mscgym search $name.json --dry-run --quiet | grep -c '^budget: '
    started
done

echo "== a record is not"
echo "no library at all" >coin.so # not a library, so an attempt to load it would fail
for name in agent env; do
    record=$name/toy.jsonl
    for command in "resume $record --trials 16" "verify $record" "export $record -o x.onnx" \
        "show $record --best" "resume $record --dry-run"; do
        echo "-- $command"
        try mscgym $command --quiet | head -n 1
        started
    done
done
echo "-- config --show"
try mscgym config --show agent.json | grep -v '^[ {}]'
try mscgym config --show env.json | sed 's/"[^"]*coin.so/"coin.so/'
started

echo "== unless it is said to be"
cp "$COIN" coin.so
for name in agent env; do
    record=$name/toy.jsonl
    mscgym resume $record --trials 16 --quiet --allow-plugins | sed -n 's/^trials: //p'
    started
    mscgym verify $record --quiet --allow-plugins
    try mscgym export $record -o x.onnx --allow-plugins
    started
    try mscgym resume $record --dry-run --allow-plugins --quiet | tail -n 1
    started
done
mscgym config --show env.json --allow-plugins | grep -c coin.so

echo "== run and track, which compress as a record says, ask likewise"
tiny net
sed -i 's|"agent": .*|"agent": {"type": "process", "command": ["bin/agent.sh"]}, "folder": ".",|' net.json
mscgym search net.json --quiet >/dev/null
started
for word in net/tiny.jsonl net.json:quantize; do
    for command in "run $word -o outputs.npz" "track $word"; do
        echo "-- $command"
        try mscgym $command --inputs "$FILES/inputs.npz" --quiet
        try mscgym $command --inputs "$FILES/inputs.npz" --quiet --allow-plugins | sed 's/, [0-9].*//; s/[0-9.]* dB/N dB/g' | tail -n 2
        started
    done
done

echo "== who is stopped is told so"
sed -i 's|"type": "toy",|"type": "toy", "delay_us": 20000,|' agent.json
sed -i 's|"trials": 12|"trials": 4000|; s|"record": "toy.jsonl"|"record": "stopped.jsonl"|; s|"verbose": "error"|"verbose": "info"|' agent.json
mscgym search agent.json >/dev/null 2>err.txt &
search=$!
while [ "$(cat agent/stopped.jsonl 2>/dev/null | wc -l)" -lt 6 ]; do
    sleep 0.01
done
kill -TERM $search
wait $search
echo "exit $?"
grep "goes on$" err.txt
