# If a strategy file cannot be written, the search continues, and its end reports it.
. "$(dirname "$0")/../lib.sh"
tiny a
long=$(printf 's%.0s' $(seq 250)) # the temporary name would be too long
sed -i "s|\"quantize\": {|&\"strategy_file\": \"$long\", |; s|\"error\"|\"warning\"|" a.json
mscgym search a.json >out 2>err
echo "exit $?"
grep -c "cannot write the strategy file, which is tried again" err | sed 's/^[1-9][0-9]*$/warned/'
tail -n 1 err | sed "s/s\{250\}/LONG/"
grep -E '^(trials|ended|strategy|model):' out
ls a
sed -i "s|$long|short.json|" a.json
mscgym search a.json 2>/dev/null | grep -E '^(trials|strategy|model):'
ls a
