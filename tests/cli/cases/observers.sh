# The observer that finds the range of a choice without an explicit observer.
. "$(dirname "$0")/../lib.sh"
observers() { # observers NAME: site, choice and observer of each edit in the strategy
    jq -r '.edits[] | [.site, .choice, .observer] | join(" ")' "$1/msc_quantize.json"
}
eight() { # eight NAME [MEMBERS]: the tiny network with 8 bits only; MEMBERS as for tiny
    tiny "$1" "$2"
    sed -i 's/, {"bits": 4}//; s/"trials": 12/"trials": 1/' "$1.json"
}
eight auto
mscgym search auto.json --quiet >/dev/null
head -n 1 auto/tiny.jsonl | jq -c .env.params.observers
observers auto

eight said '"observers": {"activations": "percentile"}'
mscgym search said.json --quiet >/dev/null
observers said
eight unknown '"observers": {"activations": "max"}'
try mscgym search unknown.json

# For tensors whose default observer differs, a choice with an explicit observer is another choice.
tiny named
sed -i 's/{"bits": 4}/{"bits": 8, "observer": "mse"}/' named.json
mscgym search named.json --quiet >/dev/null
head -n 1 named/tiny.jsonl | jq -c '.space.tasks[]'
