# A record whose checksums are good and whose trial 3 has another loss than the environment gives.
. "$(dirname "$0")/../lib.sh"
cp "$FILES/forged.jsonl" .
try mscgym verify forged.jsonl
try mscgym verify forged.jsonl --trials 2,3 --json
try mscgym verify forged.jsonl --trials 2
