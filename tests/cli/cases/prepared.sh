# A search killed after its scales were computed but before its record exists continues from these scales.
. "$(dirname "$0")/../lib.sh"

# rounded NAME AGENT: a search of the tiny network with weights that are rounded by descent.
rounded() {
    tiny a
    sed -i 's/{"bits": 4}/{"bits": 4, "rounding": "descent"}/; s/"verbose": "error"/"verbose": "info"/
        s|{"type": "random"}|'"$2"'|' a.json
    mv a.json "$1.json"
}
rounded whole '{"type": "random"}'
mscgym search whole.json >/dev/null 2>&1
mv a whole
rm -f whole/MSC_LOG

# The agent starts before the record is created. It kills the supervising process, and the search
# ends with it.
cat >deadly.sh <<'END'
#!/bin/sh
kill -KILL "$(awk '{print $4}' "/proc/$PPID/stat")"
exec sleep 60
END
chmod +x deadly.sh
rounded killed '{"type": "process", "command": ["./deadly.sh"]}'
{
    mscgym search killed.json >/dev/null
    echo "exit $?"
} 2>/dev/null # the shell's message on the kill
ls a | grep tiny

echo "== again"
told() { # counts messages that an earlier launch has prepared the search
    mscgym search whole.json 2>&1 >/dev/null | grep -c 'preparation of an earlier launch'
}
told
ls a | grep tiny.jsonl
records() { # the lines without measured values
    jq -c 'del(.measured, .checksum)' "$1/tiny.jsonl"
}
diff <(records a) <(records whole) && cmp a/tiny.jsonl.params whole/tiny.jsonl.params && echo "the same"

echo "== of another configuration"
rm -r a
{
    mscgym search killed.json >/dev/null
} 2>/dev/null
sed -i 's/"bits": 8/"bits": 7/' whole.json
told
ls a | grep tiny.jsonl

echo "== where something of another lies"
sed -i 's/"verbose": "info"/"verbose": "warning"/' whole.json
other() { # puts another file, or a link, where the scales would be stored
    rm -r a && mkdir a && "$@"
    mscgym search whole.json 2>&1 >/dev/null | grep 'moments'
    cat a/tiny.jsonl.moments
}
echo "what somebody keeps" >precious.txt
other ln -s ../precious.txt a/tiny.jsonl.moments
other ln precious.txt a/tiny.jsonl.moments
other cp precious.txt a/tiny.jsonl.moments
