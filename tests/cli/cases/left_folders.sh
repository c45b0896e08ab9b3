# Temporary files of a search that was killed are deleted by the next run of the program. Files of
# a running search remain.
. "$(dirname "$0")/../lib.sh"
mkdir temporary
export TMPDIR=$PWD/temporary
cat >wait.sh <<'END'
#!/bin/sh
ls "$(dirname "$1")" >seen.txt
mv seen.txt waiting.txt
sleep 300
END
chmod +x wait.sh
tiny a '"command": ["./wait.sh", "{model}"], "objectives": ["command"]'
search() {
    rm -f waiting.txt
    mscgym search a.json --restart >/dev/null 2>&1 &
    parent=$!
    while [ ! -e waiting.txt ]; do
        sleep 0.05
    done
    worker=$(cat /proc/$parent/task/$parent/children)
}
end() {
    {
        kill -KILL $worker $parent
        wait $parent
        # Killed processes have their files open until they have ended.
        while ls -l /proc/[0-9]*/fd | grep -q "$TMPDIR/mscgym-run-"; do
            sleep 0.01
        done
    } 2>/dev/null
}
search
mscgym graph "$FILES/tiny.onnx" >/dev/null
echo "beside a search that runs: $(ls temporary | wc -l) folder, $(ls temporary/*)"
end
echo "once it is killed: $(ls temporary | wc -l)"
mkdir temporary/mscgym-run-mine temporary/mscgym-1000 kept
ln -s "$PWD/kept" temporary/mscgym-run-link
touch kept/file
mscgym graph "$FILES/tiny.onnx" >/dev/null
echo "after the next run: $(ls temporary | tr '\n' ' ')"
ls kept
