# zsh -f capture.zsh FOLDER LINE: prints what the completion scripts in FOLDER offer for LINE, one
# match per line.
zmodload zsh/zpty
zpty shell zsh -f -i
wait_for() { local text; zpty -r -m shell text "*$1*" && print -r -- "$text"; }
zpty -w shell "PS1=; unsetopt zle_bracketed_paste 2>/dev/null; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D
bindkey '^I' complete-word; zstyle ':completion:*' list-grouped false
# Prints matches instead of inserting them.
compadd() {
    local -a found
    if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then builtin compadd \"\$@\"; return; fi
    builtin compadd -A found \"\$@\"
    local match; for match in \$found; do print -r -- \"match:\$match:\"; done
}
null-line() { print -r -- re\"\"ady }; zle -N null-line; bindkey '^X' null-line
finish() { print -r -- do\"\"ne }; zle -N finish; bindkey '^Y' finish
print re\"\"ady"
wait_for ready >/dev/null
zpty -w -n shell "$2"$'\t'$'\C-y'
wait_for done | tr -d '\r' | sed -n 's/.*match:\(.*\):.*/\1/p' | sort -u
zpty -d shell
