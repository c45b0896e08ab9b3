# Messages of a search: what started, progress, each best trial, and why it ended. The log has all
# of them, and so has standard error if it is not a terminal.
. "$(dirname "$0")/../lib.sh"
toy a 24 '"bounds": {"size_ratio": {"max": 0.05}}'
sed -i 's/"verbose": "error"/"verbose": "info", "log_every": 0.000001/' a.json
mscgym search a.json >result.txt 2>err.txt
sed 's/^[^ ]* \(info: \)\?//' a/MSC_LOG | cmp - err.txt && echo "the same in both"
sed -n 's/^gym\[0\]: //p' err.txt |
    sed 's/mscgym [0-9.]*,/mscgym,/; s/, [^ ]*\/s, after [^,]*/, N\/s, after N s/; s/left \(at most \)*[0-9].*/left \1N s/
         s/trials in .*/trials in N s/; /^measuring/d'
# Progress is logged every `log_every`; 0: never. The default is five minutes.
for every in '"log_every": "5m"' '"log_every": 0'; do
    toy b 24
    sed -i "s/\"verbose\": \"error\"/\"verbose\": \"info\", $every/" b.json
    mscgym search b.json >/dev/null 2>&1
    grep -c "trials of" b/MSC_LOG
    rm -r b
done
# Progress is also logged while the winner and the uniform plans are measured at the end.
tiny d
sed -i 's/"verbose": "error"/"verbose": "info", "log_every": 0.000001/' d.json
mscgym search d.json >/dev/null 2>&1
sed -n 's/.*: \(measuring .*\), left .*/\1/p' d/MSC_LOG
# An error that ends the search is in the log, too.
sed 's/"population": 8/"population": 9/' a.json >c.json
mscgym search c.json >/dev/null 2>err.txt
echo "exit $?"
grep -c "error: .*another search" a/MSC_LOG
