# A record with valid checksums whose trial 3 has a wrong loss.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/forged.jsonl" .
try mscgym verify forged.jsonl
try mscgym verify forged.jsonl --trials 2,3 --json
try mscgym verify forged.jsonl --trials 2
