# Every command has a help text with examples.
. "$(dirname "$0")/../lib.sh"
mscgym --help
mscgym --version | sed -n '1s/[0-9.]*$/VERSION/p'
for command in $(mscgym --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    mscgym "$command" --help >help.txt || echo "$command --help fails"
    grep -q "^usage: mscgym $command" help.txt || echo "$command: no usage"
    grep -q "^  mscgym $command" help.txt || grep -q 'mscgym export' help.txt ||
        echo "$command: no example"
done
try mscgym search --help
mscgym search --help >help.txt
mscgym help search | cmp - help.txt && echo "mscgym help search is the same"
try mscgym help serch
