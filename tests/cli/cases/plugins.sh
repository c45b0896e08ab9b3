# An agent from a shared library and one that is a program, both of the examples.
. "$(dirname "$0")/../lib.sh"
toy library 12
sed -i 's|"agent": .*|"agent": {"type": "library", "path": "'"$HILL_CLIMB"'"},|' library.json
mscgym search library.json --quiet | head -3
toy process 12
sed -i 's|"agent": .*|"agent": {"type": "process", "command": ["python3", "'"$EXAMPLES"'/random_agent.py"]},|' \
    process.json
mscgym search process.json --quiet | head -3
# A library of another kind.
toy wrong 12
sed -i 's|"agent": .*|"agent": {"type": "library", "path": "./wrong.json"},|' wrong.json
try mscgym search wrong.json --quiet | sed 's|/[^ ]*/wrong.json|wrong.json|g; s/:[^:]*$/: …/'
