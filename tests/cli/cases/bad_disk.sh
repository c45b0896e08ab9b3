# A folder that cannot be written to, and a full disk: the record remains valid.
. "$(dirname "$0")/../lib.sh"
toy a 40
sed -i 's|"workspace": "a"|"workspace": "/dev/null/a"|' a.json
# The system's reason differs: read-only, permission denied and the like.
cause='s/: [^:]*$/: CAUSE/'
try mscgym search a.json | sed "$cause"
tiny b
mscgym search b.json --quiet >/dev/null
try mscgym export b/tiny.jsonl -o /dev/null/x.onnx | sed "$cause"
try mscgym run "$FILES/tiny.onnx" --input x="$FILES/x.npy" --output /dev/null/out |
    sed "$cause"

# Files may grow to 128 KB only, as on a full disk. The thread sanitizer writes to TMPDIR.
toy c 1000
(
    ulimit -f 128
    export TMPDIR=/dev/null
    try mscgym search c.json
)
tail -n 1 c/toy.jsonl | grep -q '}$' && echo "its last line is whole"
ls c
toy d 1000
mscgym search c.json --quiet >/dev/null
mscgym search d.json --quiet >/dev/null
cmp <(mscgym show c/toy.jsonl --canonical | tail -n +2) \
    <(mscgym show d/toy.jsonl --canonical | tail -n +2) && echo "with space again, the same record"

# A log file that is a pipe without a reader must not block the search.
toy e 4
mkfifo pipe
sed -i 's|"verbose"|"log_file": "../pipe", "verbose"|' e.json
try timeout -k 1 20 mscgym search e.json --quiet | head -n 1
