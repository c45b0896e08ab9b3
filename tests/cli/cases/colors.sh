# Output is coloured on terminals, elsewhere on request. Colours do not change the text.
. "$(dirname "$0")/../lib.sh"
command -v script >/dev/null || { cat "$(dirname "$0")/colors.out"; exit; }
unset NO_COLOR
export TERM=xterm
on() { # runs a command on a wide terminal
    script -qec "stty cols 500; $*" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[K//g'
}
named() { # replaces escape sequences by names of styles
    sed -e 's/\x1b\[0m/</g; s/\x1b\[1m/H>/g; s/\x1b\[1;32m/B>/g; s/\x1b\[2m/F>/g' \
        -e 's/\x1b\[33m/W>/g; s/\x1b\[1;31m/E>/g' | cat -v
}
plain() {
    sed 's/\x1b\[[0-9;]*m//g'
}
has() { # says whether standard input has escape sequences
    grep -q $'\x1b' && echo "$1: colours" || echo "$1: none"
}
mscgym=$(command -v mscgym)
toy a 24
mscgym search a.json >/dev/null

# The text that is coloured.
on "$mscgym search a.json 2>/dev/null" | named
on "$mscgym" show a/toy.jsonl --top 9 | named | sed '/^best so far/d'
on "$mscgym" show a/toy.jsonl --best | named | head -2
on "$mscgym" show a/toy.jsonl a/toy.jsonl | named | grep 'H>' | head -1
on "$mscgym" agents random | named
on "$mscgym" envs toy | named | head -1
on "$mscgym" agents --help | named | grep '>'
on "$mscgym" show none.jsonl | named
toy b 8 '"bounds": {"distill_loss": {"max": 1e-9}, "size_bytes": {"max": 400}}'
on "$mscgym" search b.json --quiet | named | grep '[EW]>'
on "$mscgym" show b/toy.jsonl | named | grep 'F>' | head -1
for arguments in 'search a.json' 'show a/toy.jsonl --top 9' 'show a/toy.jsonl --top 2' \
    'show a/toy.jsonl --best' 'show a/toy.jsonl a/toy.jsonl' 'show b/toy.jsonl' envs; do
    mscgym $arguments >expected
    mscgym $arguments --color always | tee colored | plain | cmp - expected || echo "$arguments: another text"
    has "$arguments" <colored
done

# The conditions for colours.
show="$mscgym show a/toy.jsonl"
on "$show" | has "a terminal"
on "$show --color=auto" | has "as by default"
on "NO_COLOR=1 $show" | has "NO_COLOR=1"
on "NO_COLOR= $show" | has "NO_COLOR is empty"
on "TERM=dumb $show" | has "TERM=dumb"
on "env -u TERM $show" | has "no TERM"
on "$show --color never" | has never
on "$show | cat" | has "a pipe"
on "$show --json" | has --json
on "$show a/toy.jsonl --csv" | has --csv
$show | has "no terminal"
$show --color always | has always
NO_COLOR=1 $show --color always | has "always, whatever NO_COLOR says"
$show --color always --json | has "always, JSON"
$show a/toy.jsonl --csv --color always | has "always, CSV"
mscgym search a.json --restart --color always --log-level info 2>&1 >/dev/null | has "messages, always"
mscgym search a.json --restart --log-level info 2>&1 >/dev/null | has "messages, no terminal"
cat a/MSC_LOG a/toy.jsonl | has "log and record"
mscgym search a.json --restart --color always --log-level warning 2>&1 >/dev/null | named | sed 's/<.*/</'
mscgym show none.jsonl --color always 2>&1 | named
on "$mscgym show none.jsonl 2>errors"
has "errors in a file" <errors
try mscgym show a/toy.jsonl --color red

# Control bytes in names are printed as escapes, so that they have no effect on a terminal.
name=$(printf 'x\x02y\x1b[31mz.jsonl')
mv a/toy.jsonl "$name"
mscgym show "$name" --color always | named | head -1
