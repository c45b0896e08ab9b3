# Bare Debian roots to try things in, for scripts that source this file. Needs root and debootstrap.
#
#     . scripts/root.sh
#     root_need debootstrap
#     root_make bookworm /tmp/root          # no more than Debian's minimal packages
#     root_copy . /tmp/root/src             # a working tree, without what is built in it
#     root_run /tmp/root 'cd /src && scripts/setup'
#     root_remove /tmp/root
#
# MSC_ROOTS: a folder with roots by the names of their suites, which are copied in place of a new debootstrap.
# MSC_CCACHE: a folder for ccache, which is /ccache in the root.

# Skips the script, as ctest knows it, unless it runs as root and these programs are there.
root_need() {
    [ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
    for need in "$@"; do
        command -v "$need" >/dev/null || { echo "skipped: no $need"; exit 77; }
    done
}

root_make() {
    if [ -d "${MSC_ROOTS:-/nonexistent}/$1" ]; then
        mkdir -p "$2"
        # Its /proc may be mounted.
        tar -C "$MSC_ROOTS/$1" --one-file-system --exclude=./proc/\* --exclude=./sys/\* -cf - . | tar -C "$2" -xpf -
    else
        debootstrap --variant=minbase "$1" "$2" >"$2.log" 2>&1 || { tail "$2.log" >&2; return 1; }
    fi
    cp /etc/resolv.conf "$2/etc/resolv.conf"
    mount -t proc proc "$2/proc"
    mount -t tmpfs tmpfs "$2/dev/shm"
    if [ -n "${MSC_CCACHE:-}" ]; then
        mkdir -p "$2/ccache"
        mount --bind "$MSC_CCACHE" "$2/ccache"
    fi
}

root_copy() {
    mkdir -p "$2"
    (cd "$1" && git ls-files -coz --exclude-standard | tar --null -T - -cf -) | tar -C "$2" --no-same-owner -xf -
}

# Variables of the caller stay outside.
root_run() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        CCACHE_DIR=/ccache CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1 \
        chroot "$1" sh -euc "$2"
}

root_remove() {
    for place in ccache dev/shm proc; do
        # Nothing is removed through a mount.
        ! mountpoint -q "$1/$place" || umount "$1/$place" || umount --lazy "$1/$place" || return 1
    done
    rm -rf --one-file-system "$1" "$1.log"
}
