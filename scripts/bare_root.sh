# shellcheck shell=sh
# Functions that make and use bare Debian systems, for scripts that source this file. Need root and debootstrap.
#
#     . scripts/bare_root.sh
#     root_need debootstrap
#     root_make /tmp/root bookworm python3-venv   # Debian's minimal system with these packages
#     root_copy . /tmp/root/src                   # a working tree, without what git ignores
#     root_run /tmp/root root 'cd /src && scripts/setup'
#     rm -rf --one-file-system /tmp/root
#
# MSC_ROOTS: a folder of such systems, named by their suites, to copy instead of running debootstrap.
# MSC_CCACHE: a folder for ccache, which is /ccache in the system.

# Ends the script with 77, which ctest takes as skipped, unless it runs as root and these programs exist.
root_need() {
    [ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
    for need in "$@"; do
        command -v "$need" >/dev/null || { echo "skipped: no $need"; exit 77; }
    done
}

# root_make FOLDER SUITE [PACKAGE...]
root_make() {
    root=$1 suite=$2
    shift 2
    if [ -d "${MSC_ROOTS:-/nonexistent}/$suite" ]; then
        mkdir -p "$root"
        # Leaves out what is mounted in it.
        tar -C "$MSC_ROOTS/$suite" --one-file-system --exclude='./proc/*' --exclude='./sys/*' -cf "$root.tar" . &&
            tar -C "$root" -xpf "$root.tar" && rm "$root.tar"
    else
        debootstrap --variant=minbase "$suite" "$root" >"$root.log" 2>&1 ||
            { tail "$root.log" >&2; rm -f "$root.log"; return 1; }
        rm -f "$root.log"
    fi
    if [ $# -gt 0 ]; then
        root_run "$root" root "apt-get update -qq && apt-get install -y -qq --no-install-recommends $* >/dev/null"
    fi
}

root_copy() {
    mkdir -p "$2"
    (cd "$1" && git ls-files -coz --exclude-standard >"$2.files" && tar --null -T "$2.files" -cf "$2.tar") &&
        tar -C "$2" --no-same-owner -xf "$2.tar" && rm "$2.files" "$2.tar"
}

# root_run FOLDER USER COMMANDS: runs the commands by a shell in the user's home, and adds a missing user. Mounts
# and processes end with their namespaces, however the script ends. The commands do not get the caller's
# environment variables.
root_run() {
    [ "$2" = root ] || grep -q "^$2:" "$1/etc/passwd" || chroot "$1" useradd --create-home "$2"
    unshare --mount --pid --fork --kill-child sh -euc '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        mount --rbind /sys "$1/sys"
        mount -t tmpfs tmpfs "$1/dev/shm"
        if [ -n "${MSC_CCACHE:-}" ]; then
            mkdir -p "$MSC_CCACHE" "$1/ccache"
            mount --bind "$MSC_CCACHE" "$1/ccache"
        fi
        exec chroot --userspec="$2" "$1" env -i USER="$2" HOME="$(chroot "$1" sh -c "echo ~$2")" LC_ALL=C.UTF-8 \
            ${http_proxy:+http_proxy="$http_proxy"} DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/ccache CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -euc "cd; $3"' root_run "$@"
}
