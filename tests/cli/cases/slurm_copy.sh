# Slurm without a shared file system: an archive of the workers' files is sent to each job's node
# and deleted after the job. Scripts that run everything on this machine replace Slurm's programs.
. "$(dirname "$0")/../lib.sh"
mkdir bin tmp node
export TMPDIR=$PWD/tmp
program=$(command -v mscgym)
cat >bin/salloc <<'END'
#!/bin/sh
echo "salloc $*" | head -n 1 | sed 's/ sh -c.*//; s/--job-name=[^ ]*/--job-name=…/' >>words.txt
while [ "${1#--}" != "$1" ]; do shift; done
SLURM_JOB_NODELIST=n[1] SLURM_JOB_ID=$$ exec "$@"
END
cat >bin/sbcast <<'END'
#!/bin/sh
tar -tf "$2" | grep -o '[^/]*$' | sort >packed.txt
[ "$1" = --force ] && exec cp "$2" "$3"
END
cat >bin/srun <<'END'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do echo "srun $1" >>words.txt; shift; done
exec "$@"
END
# Notes which files exist when a worker starts.
cat >bin/worker <<END
#!/bin/sh
here=\$MSCGYM_NODE_ROOT$PWD/d
[ -f "\$here/tiny.jsonl.params" ] && [ "\$(wc -l <"\$here/tiny.jsonl")" = 1 ] && echo there >>there.txt
flock --nonblock "\$MSCGYM_NODE_ROOT" true || echo locked >>there.txt
exec "$program" "\$@"
END
chmod +x bin/*
export PATH=$PWD/bin:$PATH
tiny d
mscgym search d.json --quiet >/dev/null
mscgym show d/tiny.jsonl --canonical >alone.txt
# Files left by jobs long ago, one of which is still running.
mkdir node/mscgym-left-1 node/mscgym-runs-2
touch -d '8 days ago' node/mscgym-left-1 node/mscgym-left-1.tar node/mscgym-runs-2
exec 8<node/mscgym-runs-2
flock 8
mscgym search d.json --restart --quiet --cluster slurm:night:2 --threads 1 --copy-to "$PWD/node" \
    --worker-program "$PWD/bin/worker" >/dev/null
mscgym show d/tiny.jsonl --canonical >own.txt
cmp alone.txt own.txt && echo 'the same'
sort -u there.txt words.txt
cat packed.txt
find node tmp -type f -o -path '*/mscgym-*-*'
rmdir node/mscgym-runs-2
# A worker that does not end by itself is killed, of which no shell says a word.
printf '#!/bin/sh\n"%s" "$@"\nexec sleep 9\n' "$program" >bin/slow && chmod +x bin/slow
mscgym search d.json --restart --quiet --cluster slurm:1 --threads 1 --copy-to "$PWD/node" \
    --worker-program "$PWD/bin/slow" >/dev/null
# Copies that fail: sbcast reports an error, tar has no room, and folders or options are invalid.
cp bin/sbcast whole
printf '#!/bin/sh\necho "sbcast: error: REQUEST_FILE_BCAST(n1): No \\"such\\" folder" >&2\nexit 2\n' >bin/sbcast
copy() {
    try mscgym search d.json --restart --quiet --cluster slurm:1 --copy-to "$1" --worker-program "$PWD/bin/worker" |
        sed "s|$PWD/||g; s|mscgym-[0-9a-f]*-[0-9]*|mscgym-…|g"
}
copy /not/there
mv whole bin/sbcast
mkdir full
printf '#!/bin/sh\necho "tar: no room" >&2\nexit 1\n' >tar && chmod +x tar
sed "s|^exec|PATH=$PWD:\$PATH SLURMD_NODENAME=n1 exec|" bin/srun >other && chmod +x other && mv other bin/srun
copy "$PWD/full"
TMPDIR=/dev/null try mscgym search d.json --restart --quiet --cluster slurm:1 --copy-to "$PWD/node" |
    sed 's/mscgym-run-[^:]*/mscgym-run-…/'
try mscgym search d.json --restart --quiet --cluster slurm:1 --copy-to node
try mscgym search d.json --restart --quiet --cluster local:1 --copy-to "$PWD/node"
