# `sensitivity` measures single choices and pairs; the expected numbers are sums of the table's
# terms. It is a search with its own record: it continues after a kill, exports nothing, and can
# warm-start others.
. "$(dirname "$0")/../lib.sh"
cat >terms.json <<'END'
{
  "schema": "mscgym.table.1",
  "tasks": [
    {"name": "conv1", "choices": ["8", "6", "4"]},
    {"name": "conv2", "choices": ["8", "6", "4"]},
    {"name": "head", "choices": ["8", "4"]}
  ],
  "metrics": [
    {"name": "distill_loss", "constant": 0.5,
     "alone": [[0, 0.25, 0.5], [0, 0.125, 1], [0, 0.0625]],
     "pairs": [{"tasks": [0, 1], "values": [[0, 0, 0], [0, 0, 0], [0, 0, -0.25]]},
               {"tasks": [1, 2], "values": [[0, 0], [0, 0], [0, 0.5]]}]}
  ],
  "costs": [{"name": "size_bytes", "alone": [[80, 60, 40], [160, 120, 80], [8, 4]]}]
}
END
cat >c.json <<'END'
{"workspace": "out", "verbose": "error",
 "gym": [{"record": "t.jsonl", "parallel": 4, "budget": {"trials": 16},
          "env": {"type": "table", "file": "terms.json", "bounds": {"size_bytes": {"max": 240}}}}]}
END
mscgym sensitivity c.json
ls out
mscgym sensitivity c.json --csv
mscgym verify out/t.sensitivity.jsonl --quiet
# Any record can be analysed in the same way.
mscgym search c.json --trials 18 --quiet >/dev/null
mscgym sensitivity out/t.jsonl --pairs 1
mscgym sensitivity out/t.sensitivity.jsonl --json --pairs 1 | sed -n '/"pairs"/,$p'
# More pairs in a second record, which repeats no measurement, and a search warm-started from it.
try mscgym sensitivity c.json --pairs 1
mscgym sensitivity c.json --pairs 1 --record out/more.jsonl --warm-from out/t.sensitivity.jsonl | tail -n 3
mscgym show out/more.jsonl | grep '^trials'
mscgym search c.json --quiet --record out/next.jsonl --warm-from out/more.jsonl | grep '^trials'
# An analysis that was killed is continued by `resume` or by `sensitivity`.
toy slow 5 '"delay_us": 3000'
mscgym sensitivity slow.json >slow.txt
mscgym show slow/toy.sensitivity.jsonl --canonical >whole.txt
rm -r slow
killed 9 slow/toy.sensitivity.jsonl "" mscgym sensitivity slow.json
mscgym resume slow/toy.sensitivity.jsonl --trials 9 >/dev/null
mscgym sensitivity slow.json | cmp - slow.txt && echo "the same table"
mscgym show slow/toy.sensitivity.jsonl --canonical | cmp - whole.txt && echo "the same record"
# With a network, the record is the only output.
tiny net
mscgym sensitivity net.json --pairs 2 --quiet | tail -n 3 | cut -d+ -f 1
ls net
mscgym verify net/tiny.sensitivity.jsonl --quiet
# Errors: a configuration with several searches, and one that does not exist.
tiny two
sed -i 's/"budget": {"trials": 12}, "parallel": 4/&}, {"env": {"choices": [{"bits": 8}, {"bits": 6}]}/' two.json
try mscgym sensitivity two.json
try mscgym sensitivity missing.json
