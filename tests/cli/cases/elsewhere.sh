# Another program removes or moves the record during the search. All trials are then saved in a file of
# another name, and equal those of an undisturbed search.
. "$(dirname "$0")/../lib.sh"

# An agent that runs $ACT when it is asked for the third time.
cat >agent.sh <<'END'
while read -r line; do
    case $line in
    *'"ask"'*) n=$((n + 1)); [ "$n" = 3 ] && eval "$ACT" ;;
    esac
    printf '%s\n' "$line"
done | exec python3 "$EXAMPLES/random_agent.py"
END
search() { # search NAME: a search with the agent above
    toy "$1" 30
    sed -i 's|"agent": .*|"agent": {"type": "process", "command": ["bash", "agent.sh"]},|' \
        "$1.json"
    mscgym search "$1.json" 2>&1 | sed -n '/^mscgym: \|^ended: /p'
    echo "exit ${PIPESTATUS[0]}"
}
compare() { # compare RECORD: compares its trials with those of the undisturbed search
    cmp <(mscgym show whole/toy.jsonl --canonical | tail -n +2) \
        <(mscgym show "$1" --canonical | tail -n +2) && echo "the same record"
}
export ACT=
search whole

ACT='rm gone/toy.jsonl' search gone
ls gone | grep jsonl
ACT='mv moved/toy.jsonl moved/other.jsonl' search moved
ls moved | grep jsonl
ACT=': >emptied/toy.jsonl' search emptied
wc -c <emptied/toy.jsonl
ACT='rm -r folder' search folder
ls folder | grep jsonl
for name in gone moved emptied folder; do
    mscgym resume $name/toy.jsonl.saved.1 --quiet --allow-plugins >/dev/null
    compare $name/toy.jsonl.saved.1
done
