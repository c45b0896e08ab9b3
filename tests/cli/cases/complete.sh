# Every command and every option is in the manual page and in the completion of bash.
root=$(dirname "$0")/../../..
man=$root/man/mscgym.1
completion=$root/cli/mscgym.bash
for command in $(mscgym --help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    grep -q "^\.B $command" "$man" || echo "$command is not in the manual"
    grep -q "commands=.*\b$command\b" "$completion" || echo "$command is not completed"
    for option in $(mscgym "$command" --help | sed -n 's/^  ....--\([a-z-]*\).*/\1/p'); do
        escaped=$(printf '%s' "--$option" | sed 's/-/\\\\-/g')
        grep -q -- "$escaped" "$man" || echo "$command --$option is not in the manual"
        grep -q -- "--$option\b" "$completion" || echo "$command --$option is not completed"
    done
done
bash -n "$completion"
