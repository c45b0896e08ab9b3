# Requests that browsers do not send: odd addresses, hosts and methods, slow clients, held
# connections. Each is refused or waits, and other clients are answered meanwhile.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../serving.sh"

# raw LINE...: sends these lines; prints the status.
raw() {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf '%s\r\n' "$@" 'Connection: close' '' >&3
    head -1 <&3 | tr -d '\r' | cut -d' ' -f2
    exec 3>&-
}
# answers WHAT: checks that the page is served as before.
answers() {
    ask "/$token/" | tr -d '\r' | sed -n '/^$/,$p' | cmp - one.html && echo "$1: answered"
}
# The server does not read the rest of a long address. Its reset may arrive before its answer.
code_of_overlong() {
    local code
    code=$(code "$1")
    echo "${code:-414}"
}
long() { head -c "$1" /dev/zero | tr '\0' a; }

toy a 20
mscgym search a.json >/dev/null
serve a/toy.jsonl
ask "/$token/" | tr -d '\r' | sed -n '/^$/,$p' >one.html
host="Host: 127.0.0.1:$port"

echo "addresses:"
code "/$token/%00"
code "/$token%00/"
code "/$token%2f"
code "/%2f$token/"
code "/$token/%2e%2e/%2e%2e/etc/passwd"
code "/$token/..%2f..%2fetc%2fpasswd"
code "/$token/./"
code "//$token/"
code "/$token/%"
code "/$token/?$(long 1000)"
code "/$token/$(long 4000)"
code_of_overlong "/$token/$(long 65536)"
code_of_overlong "/$(long 65536)"
raw "GET http://127.0.0.1:$port/$token/ HTTP/1.1" "$host"
raw "GET http://evil.example/$token/ HTTP/1.1" "$host"
raw "GET $token/ HTTP/1.1" "$host"
raw "OPTIONS * HTTP/1.1" "$host"
echo "hosts:"
raw "GET /$token/ HTTP/1.1" "$host" "$host"
raw "GET /$token/ HTTP/1.1" "$host" "Host: evil.example"
raw "GET /$token/ HTTP/1.1" "Host: evil.example" "$host"
raw "GET /$token/ HTTP/1.1" "$host" "hOST: evil.example"
raw "GET /$token/ HTTP/1.0"
raw "GET /$token/ HTTP/1.0" "$host"
raw "GET /$token/ HTTP/1.1" "Host: 127.0.0.1"
raw "GET /$token/ HTTP/1.1" "Host: 127.0.0.1:$port.evil.example"
raw "GET /$token/ HTTP/1.1" "Host: user@127.0.0.1:$port"
raw "GET /$token/ HTTP/1.1" "Host: $(long 20000)"
echo "methods:"
ask "/$token/" "127.0.0.1:$port" HEAD | tr -d '\r' | sed -n '1p;/^$/,$p' | head -c 100
for method in PUT PATCH CONNECT TRACE BREW; do
    code "/$token/" "127.0.0.1:$port" "$method"
done
answers "after all these"

# One byte at a time, and half a request: neither makes other clients wait.
exec 4<>"/dev/tcp/127.0.0.1/$port" 5<>"/dev/tcp/127.0.0.1/$port"
request="GET /$token/ HTTP/1.1
$host

"
printf 'GET /%s/ HTT' "$token" >&5
for ((i = 0; i < ${#request}; i++)); do
    printf '%s' "${request:i:1}" >&4
    [ $((i % 20)) -gt 0 ] || answers "byte $i"
done
head -1 <&4 | tr -d '\r'
exec 4>&- 5>&-
ends $server

# A hundred connections are held open during a search.
toy c 200 '"delay_us": 2000'
mscgym search c.json --serve >/dev/null 2>err.txt &
search=$!
listens err.txt
held=()
for i in $(seq 100); do
    exec {fd}<>"/dev/tcp/127.0.0.1/$port"
    [ $((i % 2)) -eq 0 ] || printf 'GET /' >&"$fd"
    held+=("$fd")
done
code "/$token/"
wait $search
echo "exit $?"
for fd in "${held[@]}"; do exec {fd}>&-; done
toy d 200
mscgym search d.json >/dev/null
diff <(mscgym show c/toy.jsonl --canonical | tail -n +2) <(mscgym show d/toy.jsonl --canonical | tail -n +2) && echo "the same trials"
