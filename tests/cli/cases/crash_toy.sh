# A trial that crashes or hangs is recorded as failed, and the search continues.
. "$(dirname "$0")/../lib.sh"
toy crash 12 '"crash_at": 7'
ulimit -c 0
try mscgym search crash.json --quiet | tail -n 1
mscgym show crash/toy.jsonl --canonical | grep '"failed"' |
    sed 's/.*"id":\([0-9]*\).*"cause":"\([a-z]*\)".*/trial \1 failed, cause \2/'
wc -l <crash/toy.jsonl
toy hang 12 '"hang_at": 6'
sed -i 's/"parallel": 4/"parallel": 4, "trial_time": 0.3/' hang.json
try mscgym search hang.json --quiet | tail -n 1
mscgym show hang/toy.jsonl --canonical | grep '"failed"' |
    sed 's/.*"id":\([0-9]*\).*"cause":"\([a-z]*\)".*/trial \1 failed, cause \2/'
# --retry-failed adds a line with the new result; the failed line remains.
try mscgym search hang.json --quiet --retry-failed | tail -n 1
mscgym show hang/toy.jsonl --canonical | grep -c '"failed"'
mscgym show hang/toy.jsonl --canonical | grep -c '"retry_of":6'
