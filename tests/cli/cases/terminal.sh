# On a terminal tables fold to its width; elsewhere they are as wide as they are.
. "$(dirname "$0")/../lib.sh"
command -v script >/dev/null || { cat "$(dirname "$0")/terminal.out"; exit; }
unset NO_COLOR
export TERM=xterm # colours take no columns
on() { # columns command...: what it prints on a terminal, and the rows of tables that do not fit
    columns=$1
    shift
    script -qec "stty cols $columns; $*" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' >all
    sed '/^best so far: /d' all >shown # on a terminal alone
    awk -v n="$columns" '/^[a-z_]+: / { next } length > n { print "too wide: " $0 }' shown
}
words() {
    tr -s ' \n' '\n\n' <"$1" | sort -u
}
tiny t
mscgym search t.json --quiet >/dev/null
mscgym show t/tiny.jsonl --top 9 >top
for width in 80 60; do
    on "$width" "$(command -v mscgym)" show t/tiny.jsonl --top 9
    [ "$(wc -l <shown)" -gt "$(wc -l <top)" ] && echo "$width: in blocks"
    cmp <(words shown) <(words top) && echo "all of it"
    grep '^best so far: ' all
done
on 1000 "$(command -v mscgym)" show t/tiny.jsonl --top 9
cmp shown top && echo "the same"

for width in 120 80 50 20; do
    on "$width" "$(command -v mscgym)" graph "$FILES/tiny.onnx" --sites
    echo "$width:"
    cat shown
done
