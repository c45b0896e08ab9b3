#!/bin/sh
# Shell steps of `--cluster slurm`. The program embeds this text and runs it as
# `sh -c TEXT sh STEP ARGUMENT...`:
#
#     count PARTITION                prints the number of nodes that may run a job; "missing"
#                                    without sinfo, "failed" if sinfo fails. An empty PARTITION
#                                    means the default one.
#     end NAME                       cancels this user's jobs whose names begin with NAME
#     pack ARCHIVE RECORD FILE...    packs what workers read into ARCHIVE
#     copy TEXT ARCHIVE FOLDER NAME CPUS WORKER...
#                                    in a job's allocation, on this machine: copies ARCHIVE to
#                                    FOLDER of the job's node, then runs `node` there. CPUS is an
#                                    option of srun or empty.
#     node FOLDER NAME WORKER...     on the job's node: unpacks the archive and runs the command
#                                    WORKER

# Cancels jobs by name: a killed srun or salloc leaves its job in the queue, and a job whose node is
# lost may never end.
slurm_end() {
    squeue --noheader --user="$(id -un)" --format='%i %j' 2>/dev/null |
        while read -r job name; do
            case $name in "$1"*) scancel --quiet "$job" 2>/dev/null ;; esac
        done
}

# Counts all nodes except those that are down or drained.
slurm_count() {
    command -v sinfo >/dev/null || { echo missing; exit 0; }
    listed=$(sinfo --noheader --states=idle,alloc,mix,comp --format=%D ${1:+--partition="$1"}) ||
        { echo failed; exit 0; }
    n=0
    for some in $listed; do n=$((n + some)); done
    echo $n
}

# Each file keeps its absolute path in the archive. Only the first line of the record is packed,
# because the record grows.
slurm_pack() {
    set -e
    archive=$1 record=$2
    shift 2
    folder=$(dirname "$archive")
    stage=$(mktemp -d "$folder/XXXXXX")
    trap 'rm -rf "$stage"' EXIT
    mkdir -p "$stage$(dirname "$record")"
    head -n 1 "$record" >"$stage$record"
    for file; do
        mkdir -p "$stage$(dirname "$file")"
        [ -e "$stage$file" ] || ln -s "$file" "$stage$file"
    done
    tar -chf "$archive" -C "$stage" .
}

# Reports the error $1 in place of the worker: first a beat, by which the coordinator knows that a
# worker has started, then the answer.
fail() {
    echo '{"beat":1}'
    text=$(printf '%s' "$1" | tr '\n\t' '  ' | sed 's/[\\"]/\\&/g')
    printf '{"error":"--copy-to: %s"}\n' "$text"
    exit 1
}

slurm_copy() {
    script=$1 archive=$2 folder=$3 name=$4 cpus=$5
    shift 5
    where="node ${SLURM_JOB_NODELIST:-of job $SLURM_JOB_ID}"
    why=$(sbcast --force "$archive" "$folder/$name$SLURM_JOB_ID.tar" 2>&1) ||
        fail "the files cannot be copied to $folder on $where: check that the folder exists, is \
yours and has room ($why)"
    exec srun --quiet --nodes=1 --ntasks=1 ${cpus:+"$cpus"} sh -c "$script" sh node "$folder" "$name" "$@"
}

# First removes what crashed jobs left in FOLDER more than a week ago. A running job holds a lock on
# its folder, because unpacking may give the folder an old time.
slurm_node() {
    folder=$1 root=$1/$2$SLURM_JOB_ID
    shift 2
    where="node ${SLURMD_NODENAME:-$(uname -n)}"
    find "$folder" -maxdepth 1 -name 'mscgym-*' -user "$(id -un)" -mtime +7 \
        -exec flock --nonblock {} rm -rf {} \; 2>/dev/null
    trap 'trap "" HUP INT TERM; rm -rf "$root" "$root.tar"' EXIT
    trap 'exit 1' HUP INT TERM
    why=$(mkdir -m 700 "$root" 2>&1) || fail "$root cannot be made on $where ($why)"
    { exec 9<"$root" && flock 9; } || fail "$root cannot be locked on $where"
    why=$(tar -xf "$root.tar" -C "$root" 2>&1) || fail "the files cannot be unpacked in $root on $where ($why)"
    rm -f "$root.tar"
    exec 8>&2 2>/dev/null # leaves out the shell's message if the worker is killed
    MSCGYM_NODE_ROOT=$root sh -c 'exec "$@" 2>&8 8>&-' sh "$@"
}

step=$1
shift
"slurm_$step" "$@"
