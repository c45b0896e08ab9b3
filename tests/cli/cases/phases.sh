# --phases asks the agent again how it came to each trial. This needs the record's model, and
# --allow-plugins for agents that are programs or libraries.
. "$(dirname "$0")/../lib.sh"
toy a 40 '"bounds": {"size_ratio": {"max": 0.06}}'
sed -i 's/"agent": {[^}]*}/"agent": {"type": "auto"}/' a.json
mscgym search a.json --quiet >/dev/null
mscgym show a/toy.jsonl --phases | sed -n '/^phases/,$p'
mscgym show a/toy.jsonl --phases --json | sed -n '/"phases"/,$p' | tr -d ' \n' | cut -c 1-60
echo
tiny net
mscgym search net.json --quiet >/dev/null
mscgym show net/tiny.jsonl --phases --quiet | sed -n '/^phases/,$p'
toy p 6
sed -i "s|\"agent\": {[^}]*}|\"agent\": {\"type\": \"library\", \"path\": \"$HILL_CLIMB\"}|" p.json
mscgym search p.json --quiet >/dev/null
try mscgym show p/toy.jsonl --phases | sed "s|$HILL_CLIMB|hill_climb.so|"
mscgym show p/toy.jsonl --phases --allow-plugins --quiet | sed -n '/^phases/,$p'
