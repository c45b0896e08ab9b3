# --isa restricts a search to instructions that other machines have, too.
. "$(dirname "$0")/../lib.sh"
same() {
    mscgym show "$1" --canonical >own.txt && mscgym show alone.jsonl --canonical >alone.txt &&
        cmp own.txt alone.txt && echo "$2: the same"
}
level_of() { head -1 "$1" | jq -r .numerics | cut -d' ' -f3; }
levels=$(mscgym devices --json | jq -r '.isa[]')
mscgym devices --isa sse41 --json | jq -c '[.isa, (.devices[0].numerics | split(" ")[2])]'
mscgym devices --isa sse41 | grep ^isa
tiny d
mscgym search d.json --quiet --isa sse41 >/dev/null
level_of d/tiny.jsonl
cp d/tiny.jsonl alone.jsonl
cp d/tiny.jsonl.params alone.jsonl.params
# Workers are passed the level; resume and verify need the same option.
mscgym search d.json --restart --quiet --isa sse41 --cluster local:2 >/dev/null
same d/tiny.jsonl 'two workers'
mscgym search d.json --restart --quiet --isa sse41 --trials 5 >/dev/null
mscgym resume d/tiny.jsonl --quiet --isa sse41 --trials 12 --cluster local:3 >/dev/null
same d/tiny.jsonl resumed
mscgym verify d/tiny.jsonl --isa sse41 --quiet >/dev/null && echo verified
# Continuing with other instructions is refused (this machine may have none).
if [ "$levels" = sse41 ]; then
    echo 'refused: 1'
else
    mscgym resume d/tiny.jsonl --quiet --trials 13 2>&1 | grep -c 'sse41.*would continue with' | sed 's/^/refused: /'
fi
mscgym graph "$FILES/tiny.onnx" --placement --isa sse41 --bind N=2 --json | jq -r .numerics | cut -d' ' -f3
# Unknown levels, with and without a model, here and in a worker. Newer versions of oneDNN have more levels.
shorten() { sed 's/\(expected one of sse41, avx, avx2\)[a-z0-9_, ]*/\1 .../'; }
toy a 10
{
    try mscgym search a.json --isa avx9
    try mscgym devices --isa avx512_mic
    try mscgym run "$FILES/tiny.onnx" --isa AVX2
    try mscgym graph "$FILES/tiny.onnx" --placement --isa avx9 --bind N=2
} | shorten
printf '{"method":"init","protocol":1,"record":"%s","threads":1,"isa":"avx9"}\n' "$PWD/d/tiny.jsonl" |
    mscgym worker --quiet | grep -v beat | shorten
# A level that this processor lacks, if there is one.
lacking=
for level in avx512_core_amx avx512_core avx2; do
    grep -qx $level <<<"$levels" || lacking=$level
done
if [ "$lacking" ]; then
    mscgym search a.json --isa "$lacking" 2>&1 | sed 's/isa [^:]*:/isa …:/; s/sse41.*/sse41 …/'
else
    echo 'mscgym: isa …: this processor lacks it; it supports sse41 …'
fi
