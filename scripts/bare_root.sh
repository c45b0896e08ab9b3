# Sourced by scripts that try things on a Debian without anything of ours, as root:
#
#     bare_root_make FOLDER bookworm python3-venv      # a new root, with these packages
#     bare_root_make FOLDER /srv/bookworm python3-venv # the same of a copy of a root that is there
#     bare_root_run FOLDER USER 'commands'             # in it, of a shell: root, or a user that is made

# The folder is there, and empty.
bare_root_make() {
    bare_root=$1 bare_root_of=$2
    shift 2
    if [ -d "$bare_root_of" ]; then
        cp -a "$bare_root_of/." "$bare_root"
    else
        debootstrap --variant=minbase "$bare_root_of" "$bare_root" >"$bare_root.log" ||
            { tail -n 20 "$bare_root.log" >&2; return 1; }
        rm "$bare_root.log"
    fi
    if [ $# -gt 0 ]; then
        bare_root_run "$bare_root" root "export DEBIAN_FRONTEND=noninteractive
            apt-get update -qq && apt-get install -y -qq --no-install-recommends $* >/dev/null"
    fi
}

# In a namespace of its own, with which mounts and processes end; nothing of the environment goes in.
bare_root_run() {
    [ "$2" = root ] || grep -q "^$2:" "$1/etc/passwd" || chroot "$1" useradd --create-home "$2"
    unshare --mount --pid --fork --kill-child sh -euc '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec chroot --userspec="$2" "$1" env -i USER="$2" HOME="$(chroot "$1" sh -c "echo ~$2")" LANG=C.UTF-8 \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -euc "cd; $3"' bare_root_run "$@"
}
