# The progress as lines of JSON, for programs; messages remain lines of text.
. "$(dirname "$0")/../lib.sh"

tiny search
sed -i 's|"verbose": "error"|"verbose": "warn"|' search.json
MSCGYM_PROGRESS=json mscgym search search.json >shown.txt 2>progress.txt
echo "exit $?"
for kind in trials measuring; do
    grep -q "^{\"progress\":{\"name\":\"quantize\[0\]\",\"$kind\":.*}}\$" progress.txt && echo "search: $kind"
done
grep '"of":12,' progress.txt | grep -q '"best":[0-9]' && echo "search: the number of trials and the best value"
MSCGYM_PROGRESS=json mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o small.onnx --effort fast \
    >shown.txt 2>progress.txt
echo "exit $?"
grep -q '^{"progress":{"name":"quantize","measuring":"8-bit plans"' progress.txt && echo "quantize: measuring"
MSCGYM_PROGRESS=json mscgym quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o small.onnx --effort fast \
    --quiet >shown.txt 2>progress.txt
[ -s progress.txt ] || echo "quiet"
mscgym search search.json --restart >shown.txt 2>progress.txt
grep -q '"progress"' progress.txt || echo "no lines of JSON without the variable"
