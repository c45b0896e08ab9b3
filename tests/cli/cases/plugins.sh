# Agents from a library and from a program (the examples), and libraries given by path.
. "$(dirname "$0")/../lib.sh"
toy library 12
sed -i 's|"agent": .*|"agent": {"type": "library", "path": "'"$HILL_CLIMB"'"},|' library.json
mscgym search library.json --quiet | head -3
toy process 12
sed -i 's|"agent": .*|"agent": {"type": "process", "command": ["python3", "'"$EXAMPLES"'/random_agent.py"]},|' \
    process.json
mscgym search process.json --quiet | head -3
# A file that is not a library.
toy wrong 12
sed -i 's|"agent": .*|"agent": {"type": "library", "path": "./wrong.json"},|' wrong.json
try mscgym search wrong.json --quiet | sed 's|/[^ ]*/wrong.json|wrong.json|g; s/:[^:]*$/: …/'
# Lists what a library holds, given its path.
cp "$HILL_CLIMB" agent.so
cp "$COIN" env.so
try mscgym agents ./agent.so
try mscgym envs env.so
mscgym agents agent.so --json | jq -c '.[].name'
mscgym envs ./env.so --json | jq -c '.[].name'
try mscgym agents ./env.so
# If the caller ignores SIGCHLD, a program cannot wait for its children. Libraries are listed nevertheless.
deaf() {
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}
deaf mscgym envs ./env.so --json | jq -c '.[].name'
deaf mscgym envs --check ./env.so --json | jq -c 'map(.kept) | unique'
try mscgym envs ./agent.so
try mscgym agents ./missing.so
try mscgym envs ./missing.so
