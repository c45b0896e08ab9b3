# Libraries that are invalid, or crash when they are loaded, are reported in one line that names them.
. "$(dirname "$0")/../lib.sh"
ulimit -c 0
cp "$FAULTS" faults.so
mkfifo pipe.so
for fault in "no name" "endless params" "abi" "later abi" "crash"; do
    MSC_FAULT=$fault try mscgym envs ./faults.so
    MSC_FAULT=$fault try mscgym agents ./faults.so --json
done
try mscgym envs ./pipe.so
# A library with invalid parameters in a search.
toy agent 12
sed -i 's|"agent": .*|"agent": {"type": "library", "path": "./faults.so"},|' agent.json
MSC_FAULT="wild params" try mscgym search agent.json --quiet
# A library that exits the process with code 0: there is no result, and --on-end reports that.
MSC_FAULT="exit" try mscgym search agent.json --quiet --on-end '["sh", "-c", "echo $MSCGYM_EVENT: $MSCGYM_MESSAGE >told.txt"]'
cat told.txt
cat >env.json <<END
{"workspace": "env", "gym": [{"env": {"type": "./faults.so"}, "agent": {"type": "random"}}]}
END
MSC_FAULT="no init" try mscgym search env.json --quiet
MSC_FAULT="space" try mscgym search env.json --quiet
