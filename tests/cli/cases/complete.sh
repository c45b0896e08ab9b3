# The manual page and the completion scripts name every command and option, and bash completes them.
. "$(dirname "$0")/../lib.sh"
root=$(dirname "$0")/../../..
mscgym manual "$root/man/mscgym.1.in" | sed 's/\\-/-/g; s/\\f[BIR]//g' >manual
for shell in bash zsh fish; do
    mscgym completion $shell >$shell
done
commands=$(mscgym --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
[ "$(echo "$commands" | wc -l)" -gt 20 ] || echo "few commands: $commands"
for command in $commands; do
    grep -q "^$command " manual || echo "$command is not in the manual"
    # The part of each script for this command.
    sed -n "/^    $command)$/,/^        ;;$/p" bash >bash.command
    sed -n "/^    $command)$/,/^        ;;$/p" zsh >zsh.command
    sed -n "s/^.*seen_subcommand_from $command' -l \([a-z-]*\) .*/--\1/p" fish >fish.command
    for option in $(mscgym "$command" --help | sed -n 's/^  ....\(--[a-z-]*\).*/\1/p'); do
        grep -q -e "^$option\( \|\$\)" -e "^-., $option\( \|\$\)" manual || echo "$command $option is not in the manual"
        for shell in bash zsh fish; do
            grep -q -e "[^a-z-]$option\([^a-z-]\|\$\)" -e "^$option\$" $shell.command ||
                echo "$command $option is not completed by $shell"
        done
    done
done
bash -n bash

echo "- bash"
. ./bash
touch digits.json
mkdir digits
# complete_words WORD...: prints what bash offers for the last word.
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _mscgym
    # The order of files depends on the file system, so sort.
    echo "$*: $(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -s -d ' ')"
}
complete_words mscgym sea
complete_words mscgym search --ba
complete_words mscgym search --color al
complete_words mscgym search --color = al
complete_words mscgym search --baseline ''
complete_words mscgym search digits.j
complete_words mscgym search --trials ''
complete_words mscgym export --tensorboard dig
complete_words mscgym export -o dig
complete_words mscgym agents ev
complete_words mscgym completion ''

echo "- a template without a command or an option"
printf '@COMMAND search\n' >template
try mscgym manual template
sed '/@OPTIONS --check/d' "$root/man/mscgym.1.in" >template
try mscgym manual template
echo '@OPTIONS --nothing' >template
try mscgym manual template
