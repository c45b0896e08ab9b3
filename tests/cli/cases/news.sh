# What ran, how far it came, what was best when and why it ended: the log says it alone, and so does
# standard error where it is no terminal.
. "$(dirname "$0")/../lib.sh"
toy a 24 '"bounds": {"size_ratio": {"max": 0.05}}'
sed -i 's/"verbose": "error"/"verbose": "info", "log_every": 0.000001/' a.json
mscgym search a.json >result.txt 2>err.txt
sed 's/^[^ ]* \(info: \)\?//' a/MSC_LOG | cmp - err.txt && echo "the same in both"
sed -n 's/^gym\[0\]: //p' err.txt |
    sed 's/mscgym [0-9.]*,/mscgym,/; s/, [^ ]*\/s, after [^,]*/, N\/s, after N s/; s/left \(at most \)*[0-9].*/left \1N s/
         s/trials in .*/trials in N s/; /^measuring/d'
# Now and then: every five minutes unless it is said otherwise, and never with 0.
for every in '"log_every": "5m"' '"log_every": 0'; do
    toy b 24
    sed -i "s/\"verbose\": \"error\"/\"verbose\": \"info\", $every/" b.json
    mscgym search b.json >/dev/null 2>&1
    grep -c "trials of" b/MSC_LOG
    rm -r b
done
# So while the winner and the uniform plans are measured once more, which may take as long as the rest.
tiny d
sed -i 's/"verbose": "error"/"verbose": "info", "log_every": 0.000001/' d.json
mscgym search d.json >/dev/null 2>&1
sed -n 's/.*: \(measuring .*\), left .*/\1/p' d/MSC_LOG
# What ended a search with an error stands there, too.
sed 's/"population": 8/"population": 9/' a.json >c.json
mscgym search c.json >/dev/null 2>err.txt
echo "exit $?"
grep -c "error: .*another search" a/MSC_LOG
