# --warm-from: a search starts from the results of other searches. Their values are used if they
# hold here, otherwise only their points. If the search is killed, it continues without the files of
# the others and gives the same record.
. "$(dirname "$0")/../lib.sh"
toy first 30
mscgym search first.json --quiet >/dev/null
# The same environment with a bound: the agent observes 30 trials.
toy next 12 '"bounds": {"size_ratio": {"max": 0.06}}'
sed -i 's/"verbose": "error"/"verbose": "info"/' next.json
mscgym search next.json --warm-from first/toy.jsonl 2>&1 | grep '^warm\|^trials'
mscgym verify next/toy.jsonl --quiet
cp next/toy.jsonl whole.jsonl
mscgym show whole.jsonl --canonical | grep -o '"warm":"[a-z]*"' | sort | uniq -c
# Another environment: its best points are tried, except those that were already observed.
toy other 12
sed -i 's/"seed": 1,/"seed": 2,/; s/"verbose": "error"/"verbose": "info"/' other.json
mscgym search other.json --warm-from first/toy.jsonl --warm-from next/toy.jsonl 2>&1 | grep '^warm\|^trials'
# Killed together with its parent process.
toy slow 60 '"delay_us": 2000'
mscgym search slow.json --quiet --warm-from first/toy.jsonl >/dev/null
mscgym show slow/toy.jsonl --canonical >slow.txt
rm -r slow
for lines in 8 16 40; do
    killed $lines slow/toy.jsonl "" mscgym search slow.json --warm-from first/toy.jsonl
done
mv first/toy.jsonl gone.jsonl
mscgym resume slow/toy.jsonl --quiet >/dev/null
mscgym show slow/toy.jsonl --canonical | cmp - slow.txt && echo "the same record"
mscgym show slow/toy.jsonl | grep '^trials'
# The same command continues; with other files it is refused.
mscgym search slow.json --warm-from first/toy.jsonl >/dev/null && echo "goes on"
try mscgym search slow.json --quiet --warm-from next/toy.jsonl
try mscgym search next.json --quiet --warm-from gone.jsonl --warm-from other/toy.jsonl
# Files that a search cannot start from: one that is not a record, a missing one, its own record, and a
# record of a network.
echo '{}' >no.json
try mscgym search other.json --restart --quiet --warm-from no.json
try mscgym search other.json --restart --quiet --warm-from missing.jsonl
try mscgym search other.json --restart --quiet --warm-from other/toy.jsonl
tiny net '"bounds": {"size_ratio": {"max": 0.3}}'
mscgym search net.json --quiet >/dev/null
try mscgym search other.json --restart --quiet --warm-from net/tiny.jsonl
# A strategy file counts as one point.
cp net/msc_quantize.json plan.json
tiny again
sed -i 's/"verbose": "error"/"verbose": "info"/' again.json
mscgym search again.json --warm-from plan.json 2>&1 | grep '^warm'
mscgym show again/tiny.jsonl --canonical | grep '"warm"' | grep -o '"choices":[^a-z]*,'
mscgym show net/tiny.jsonl --best | head -n 5
# Values hold for another list of choices, but not for other samples.
tiny wider
sed -i 's/"verbose": "error"/"verbose": "info"/; s/{"bits": 4}/{"bits": 6}, {"bits": 4}/' wider.json
mscgym search wider.json --warm-from net/tiny.jsonl 2>&1 | grep '^warm'
mscgym verify wider/tiny.jsonl --quiet
tiny fewer
sed -i 's/"verbose": "error"/"verbose": "info"/; s/"batch": 2/"batch": 2, "samples": 4/' fewer.json
mscgym search fewer.json --warm-from net/tiny.jsonl 2>&1 | grep '^warm'
