# Helpers for cases that request pages over HTTP. Source it after lib.sh.

# serve ARGUMENTS...: runs `report --serve` in the background; sets $server, $port and $token.
serve() {
    rm -f page.txt # from an earlier server
    mscgym report "$@" --serve >page.txt 2>&1 &
    server=$!
    listens page.txt
}
# listens FILE: waits until FILE has the address; sets $port and $token.
listens() {
    until cat "$1" 2>/dev/null | grep -q 'page: http.*/$'; do sleep 0.01; done
    address=$(sed -n 's,.*page: http://127.0.0.1:,,p' "$1")
    port=${address%%/*}
    token=${address#*/}
    token=${token%/}
}
ends() {
    kill "$1"
    wait "$1"
} 2>/dev/null
# ask PATH [HOST] [METHOD]: prints the whole response.
ask() {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' \
        "${3:-GET}" "$1" "${2-127.0.0.1:$port}" >&3
    cat <&3
    exec 3>&-
}
code() { ask "$@" | head -1 | tr -d '\r' | cut -d' ' -f2; }
