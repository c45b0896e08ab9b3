# A dry run prints the cost of the search and writes nothing.
. "$(dirname "$0")/../lib.sh"
toy a 50
mscgym search a.json --dry-run | sed 's/about .*//'
ls
tiny b
mscgym search b.json --dry-run | sed 's/^trial: .*/trial:/; s/about [0-9.]* [a-z]*, until.*//; s/^\(then\|record\): .*/\1:/; s/up to .*//'
ls

# What the trials of the first round share, worked out from their choices: the convolution reads the first
# two tasks and takes 288 multiply-accumulates, the linear layer reads all four and takes 96.
cat >shares.py <<'END'
import json, sys
estimate = json.load(open(sys.argv[1]))[0]["estimate"]
trials = [json.loads(line) for line in open(sys.argv[2]) if '"kind":"trial"' in line]
baselines = [t["choices"] for t in trials if "baseline" in t]
first = [t["choices"] for t in trials if "baseline" not in t][:4]
def reused(kept):
    seen, n = {tuple(c[:k]) for c in kept for k in (2, 4)}, 0
    for c in first:
        for key, macs in ((tuple(c[:2]), 288), (tuple(c), 96)):
            n += macs if key in seen else 0
            seen.add(key)
    return n / (len(first) * 384)
expected = reused([]), reused(baselines) - reused([])
found = estimate["shared_ratio"], estimate["kept_ratio"]
assert all(abs(a - b) < 1e-9 for a, b in zip(expected, found)), (expected, found)
print("shared %g, kept %g" % found)
END
for seed in 0 1 2; do
    sed "s|\"parallel\"|\"seed\": $seed, &|" b.json >c.json
    mscgym search c.json --dry-run --json 2>/dev/null >estimate.json
    mscgym search c.json --restart --quiet >/dev/null
    python3 shares.py estimate.json b/tiny.jsonl
    rm -r b
done
