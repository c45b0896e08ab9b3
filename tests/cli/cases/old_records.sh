# Records of earlier versions: read, shown, verified, and gone on with to the same lines.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/tiny.onnx" "$FILES/inputs.npz" "$FILES/labels.npy" .
lines() { # the trials of a record as they are compared
    mscgym show "$1" --canonical | tail -n +2
}
numerics() {
    head -n 1 "$1" | sed 's/.*"numerics":"\([^"]*\)".*/\1/'
}
tiny fresh
mscgym search fresh.json --trials 0 --quiet >/dev/null
for schema in 1 2; do
    old=schema_$schema
    cp -r "$FILES/../../records/files/$old" .
    cp $old/tiny.jsonl.params $old/tiny_stopped.jsonl.params
    echo "$old"
    mscgym show $old/mixed.jsonl
    for name in toy killed mixed tiny tiny_stopped; do
        mscgym show $old/$name.jsonl --canonical | sha256sum
    done
    mscgym verify $old/toy.jsonl

    # On to where the finished one ended, and both of them further.
    mscgym resume $old/killed.jsonl --quiet >/dev/null
    cmp <(lines $old/toy.jsonl) <(lines $old/killed.jsonl) && echo "resumed to the same lines"
    for name in toy killed mixed; do
        mscgym resume $old/$name.jsonl --trials 48 --quiet >/dev/null
        echo "$name: $(lines $old/$name.jsonl | grep -c '"trial"')"
    done
    cmp <(lines $old/toy.jsonl) <(lines $old/killed.jsonl) && echo "and further"
    head -n 1 $old/toy.jsonl | grep -o '"schema":[0-9]*'
    tail -n 1 $old/toy.jsonl | grep -o '"measured".*' | sed 's/[0-9.]\{1,\}/N/g; s/"sum":"[^"]*"/"sum":"..."/'

    # Of a network, on a machine that computes as that one did or otherwise.
    options=
    [ "$(numerics fresh/tiny.jsonl)" = "$(numerics $old/tiny.jsonl)" ] ||
        options=--accept-new-numerics
    mscgym verify $old/tiny.jsonl >/dev/null && echo "verified"
    mscgym resume $old/tiny_stopped.jsonl --trials 12 $options --quiet >/dev/null
    echo "tiny_stopped: $(lines $old/tiny_stopped.jsonl | grep -c '"trial"')"
    [ -n "$options" ] || cmp <(lines $old/tiny.jsonl) <(lines $old/tiny_stopped.jsonl)
done

# A greedy search beside another that version 2 of its agent began: its lines up to the plan that is made early, at the end of the budget.
cp -r "$FILES/../../records/files/greedy_2" beside
cat >beside.json <<END
{"workspace": "beside", "verbose": "error",
 "gym": [{"record": "toy.jsonl", "env": {"type": "toy", "tasks": 6, "choices": 4, "seed": 1, "interaction": 0.5,
          "bounds": {"size_ratio": {"max": 0.06}}},
          "agent": {"type": "random"}, "budget": {"trials": 12}, "seed": 3, "parallel": 4}]}
END
mscgym search beside.json --baseline greedy --quiet >/dev/null && echo "greedy beside it"
lines beside/toy.greedy.jsonl | sha256sum

# Of versions 4 to 6 of `auto`, whose proposals a new search no longer makes.
for version in 4 5 6; do
    cp -r "$FILES/../../records/files/auto_$version" .
    mscgym resume auto_$version/toy_stopped.jsonl --trials 60 --quiet >/dev/null
    cmp <(lines auto_$version/toy.jsonl) <(lines auto_$version/toy_stopped.jsonl) && echo "auto: resumed to the same lines"
    sed -n 's/.*\("agent":{"type":"auto","version":[0-9]*\).*/\1/p' auto_$version/toy.jsonl
done
mscgym resume auto_6/pairs_begun.jsonl --trials 440 --quiet >/dev/null
lines auto_6/pairs_begun.jsonl | sha256sum

# Races: one whose rungs were those by default then, and are no longer, and in which the best trial so far had no
# part; one in which it has; and one whose agent was told repeats otherwise than a new one is.
for race in race_1 race_2 race_3; do
    cp -r "$FILES/../../records/files/$race" .
    cp $race/tiny.jsonl.params $race/tiny_stopped.jsonl.params
    grep -o '"race":{[^}]*}' $race/tiny_stopped.jsonl
    options=
    [ "$(numerics fresh/tiny.jsonl)" = "$(numerics $race/tiny.jsonl)" ] || options=--accept-new-numerics
    mscgym verify $race/tiny.jsonl >/dev/null && echo "verified"
    mscgym resume $race/tiny_stopped.jsonl --trials 27 $options --quiet >/dev/null
    [ -n "$options" ] || cmp <(lines $race/tiny.jsonl) <(lines $race/tiny_stopped.jsonl) && echo "resumed to the same lines"
done
sed -e 's|"budget": {"trials": 12}, "parallel": 4|"parallel": 8, "race": true|' -e 's|"batch": 2|"batch": 1|' fresh.json >new.json
mscgym search new.json --restart --trials 0 --quiet >/dev/null
grep -o '"race":{[^}]*}' fresh/tiny.jsonl

# The loss kl, with the exponentials of the C library; new records have others, and where there is no kl nothing is new.
cp -r "$FILES/../../records/files/kl_2" .
cp kl_2/tiny.jsonl.params kl_2/tiny_stopped.jsonl.params
options=
[ "$(numerics fresh/tiny.jsonl)" = "$(numerics kl_2/tiny.jsonl)" ] || options=--accept-new-numerics
mscgym verify kl_2/tiny.jsonl >/dev/null && echo "kl: verified"
mscgym resume kl_2/tiny_stopped.jsonl --trials 12 $options --quiet >/dev/null
[ -n "$options" ] || cmp <(lines kl_2/tiny.jsonl) <(lines kl_2/tiny_stopped.jsonl) && echo "resumed to the same lines"
version() {
    grep -o '"env":{"type":"[a-z]*","version":[0-9]*' "$1"
}
version kl_2/tiny_stopped.jsonl
tiny kl '"loss": "kl"'
mscgym search kl.json --quiet >/dev/null
version kl/tiny.jsonl
mscgym verify kl/tiny.jsonl >/dev/null && echo "kl: verified"
version fresh/tiny.jsonl

# A grid search of version 3 in a race, with a bound on what a part of the batches does not tell.
cp -r "$FILES/../../records/files/grid_3" .
cp grid_3/tiny.jsonl.params grid_3/tiny_stopped.jsonl.params
options=
[ "$(numerics fresh/tiny.jsonl)" = "$(numerics grid_3/tiny.jsonl)" ] || options=--accept-new-numerics
mscgym resume grid_3/tiny_stopped.jsonl --trials 40 $options --quiet >/dev/null
[ -n "$options" ] || cmp <(lines grid_3/tiny.jsonl) <(lines grid_3/tiny_stopped.jsonl) && echo "grid: resumed to the same lines"
