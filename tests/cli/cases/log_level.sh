# --log-level overrides the configuration's `verbose`, on standard error and in MSC_LOG.
. "$(dirname "$0")/../lib.sh"
toy a 12
told() { # counts messages of each kind on standard error and in the log
    mscgym search a.json --restart "$@" >/dev/null 2>err
    for kind in best.is warning:; do
        echo "$*: $kind $(grep -c "$kind" err) $(grep -c "$kind" a/MSC_LOG)"
    done
    rm -f a/MSC_LOG err
}
told
for level in debug info runtime warn warning error critical; do
    told --log-level "$level"
done
sed -i 's/"verbose": "error"/"verbose": "debug"/' a.json
told
told --log-level warning
told --log-level=error
told --quiet
told --quiet --log-level warning

# The record does not depend on the level. A resumed search may use another level.
mscgym search a.json --restart --log-level error >/dev/null
cp a/toy.jsonl one.jsonl
mscgym search a.json --restart --log-level debug >/dev/null 2>&1
cmp <(mscgym show one.jsonl --canonical) <(mscgym show a/toy.jsonl --canonical) && echo "the same record"
mscgym resume a/toy.jsonl --trials 20 --log-level info 2>&1 >/dev/null | grep -c 'continuing after 15 trials'
mscgym resume a/toy.jsonl --trials 30 --log-level warning 2>&1 >/dev/null | grep -c 'continuing after'

# Commands that have no configuration.
cp a/toy.jsonl torn.jsonl
printf '{"torn' >>torn.jsonl
mscgym show torn.jsonl 2>&1 >/dev/null | grep -c .
mscgym show torn.jsonl --log-level error 2>&1 >/dev/null | grep -c .

try mscgym search a.json --log-level loud
try mscgym search a.json --log-level
try mscgym show a/toy.jsonl --log-level=
