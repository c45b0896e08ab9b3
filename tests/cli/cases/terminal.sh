# On a terminal, tables are folded to its width; elsewhere they have their full width.
. "$(dirname "$0")/../lib.sh"
command -v script >/dev/null || { cat "$(dirname "$0")/terminal.out"; exit; }
unset NO_COLOR
export TERM=xterm # colours take up no columns
on() { # on COLUMNS COMMAND...: prints its output on a terminal, and rows that are too wide
    columns=$1
    shift
    script -qec "stty cols $columns; $*" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' >all
    sed '/^best so far: /d' all >shown # printed on terminals only
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
