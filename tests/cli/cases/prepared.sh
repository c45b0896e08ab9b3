# A search that is killed once its scales are there, and before its record is begun, goes on from them.
. "$(dirname "$0")/../lib.sh"

# rounded NAME AGENT: a search of the tiny network over weights that are rounded with care.
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

# The agent is started before the record is made: this one kills who would begin the search again, and the
# search goes with that.
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
} 2>/dev/null # what the shell says of it
ls a | grep tiny

echo "== again"
told() { # how often the search that follows says so
    mscgym search whole.json 2>&1 >/dev/null | grep -c 'preparation of an earlier launch'
}
told
ls a | grep tiny.jsonl
records() { # what does not change from run to run
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
other() { # where it would go: a link, or a file
    rm -r a && mkdir a && "$@"
    mscgym search whole.json 2>&1 >/dev/null | grep 'moments'
    cat a/tiny.jsonl.moments
}
echo "what somebody keeps" >precious.txt
other ln -s ../precious.txt a/tiny.jsonl.moments
other ln precious.txt a/tiny.jsonl.moments
other cp precious.txt a/tiny.jsonl.moments
