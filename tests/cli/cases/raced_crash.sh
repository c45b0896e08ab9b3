# A raced round with more crashing trials than there are restarts without progress: each of them
# fails, the others race on, and the record is the same however it was made.
. "$(dirname "$0")/../lib.sh"
ulimit -c 0

# raced NAME: a round of 8 trials. After the first of 16 batches their losses are compared; the
# survivors are passed to NAME.sh.
raced() {
    tiny "$1" '"command": ["./'"$1"'.sh", "{model}"], "bounds": {"command": {"max": 1}}'
    sed -i -e 's|"batch": 2|"batch": 1|' \
        -e 's|{"trials": 12}, "parallel": 4|{"trials": 8}, "parallel": 8, "race": {"rungs": [1], "keep": 0.9}|' "$1.json"
}

# A program that kills its parent for every quantised model but those of the two baselines.
cat >all.sh <<'END'
#!/bin/sh
grep -q QuantizeLinear "$1" || exec echo 1
sum=$(cksum <"$1")
[ "$(cat known 2>/dev/null | wc -l)" -ge 2 ] || echo "$sum" >>known
grep -qxF "$sum" known || kill -SEGV "$PPID"
echo 1
END
chmod +x all.sh
raced all
mscgym search all.json --quiet >/dev/null 2>&1
echo "exit $?"
jq -r 'select(.kind == "trial") | .state' all/tiny.jsonl | sort | uniq -c | sed 's/^ *//'
ls all | grep attempt

# A program that kills its parent for some models. The record is also cut and continued.
cat >some.sh <<'END'
#!/bin/sh
sum=$(cksum <"$1")
[ $((${sum%% *} % 3)) -ne 0 ] || kill -SEGV "$PPID"
echo 1
END
chmod +x some.sh
raced some
mscgym search some.json --quiet >/dev/null 2>&1
echo "exit $?"
mscgym show some/tiny.jsonl --canonical >whole.txt
cp some/tiny.jsonl whole.jsonl
for n in 2 4 7; do
    head -n $n whole.jsonl >some/tiny.jsonl
    mscgym search some.json --quiet >/dev/null 2>&1
    mscgym show some/tiny.jsonl --canonical | cmp - whole.txt && echo "cut after $n lines: the same record"
done
