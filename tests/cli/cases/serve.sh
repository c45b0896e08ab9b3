# Pages are served only on this machine, only to clients with the token, and read-only. Many
# requests at once are answered, and a running search continues.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../serving.sh"

toy a 20
mscgym search a.json >/dev/null
serve a/toy.jsonl
echo "token of ${#token}"
code "/$token/"
code "/$token/" "localhost:$port"
echo "refused:"
code "/"
code "/${token%?}/"
code "/$(echo "$token" | tr 0-9a-f a-f0-9)/"
code "/$token/" "evil.example"
code "/$token/" "evil.example:$port"
code "/$token/" ""
code "/$token/../../../etc/passwd"
code "/$token/%2e%2e/a.json"
code "/$token/a/toy.jsonl"
code "/$token/" "127.0.0.1:$port" POST
code "/$token/" "127.0.0.1:$port" DELETE
ask "/$token/" | tr -d '\r' | sed -n '2,/^$/p' | grep -iE 'cache|options|referrer|resource|type'
ask "/$token/" | grep -c 'data-live="1"'

# A hundred requests at once.
ask "/$token/" | tr -d '\r' | sed -n '/^$/,$p' >one.html
for i in $(seq 100); do
    ask "/$token/" | tr -d '\r' | sed -n '/^$/,$p' | cmp -s - one.html && echo same >>same.txt &
    readers+=($!)
done
wait "${readers[@]}"
grep -c same same.txt
ends $server

# For a folder, the list of its records and their pages.
toy b 20
mscgym search b.json >/dev/null
serve a b
ask "/$token/" | sed -n '/<tbody>/,/<\/tbody>/p' | sed 's/<[^>]*>/ /g' | tr -s ' ' | grep toy
first=$(ask "/$token/" | grep -oE 'href="[0-9a-f]{16}"' | head -1 | tr -d '"')
ask "/$token/${first#href=}" | grep -o '<h1 id="r0-h">[^<]*'
ends $server

# During a search the record grows while pages are requested; its trials are those of a search without pages.
toy c 400 '"delay_us": 2000'
mscgym search c.json --serve >/dev/null 2>err.txt &
search=$!
listens err.txt
until [ "$(cat c/toy.jsonl 2>/dev/null | grep -c '"kind":"trial"')" -gt 4 ]; do sleep 0.01; done
page=$(ask "/$token/" | grep -oE 'href="[0-9a-f]{16}"' | head -1 | tr -d '"')
for i in $(seq 30); do ask "/$token/${page#href=}" >/dev/null; done
wait $search
echo "exit $?"
toy d 400 '"delay_us": 2000'
sed -i 's/"delay_us": 2000/"delay_us": 0/' d.json
mscgym search d.json >/dev/null
diff <(mscgym show c/toy.jsonl --canonical | tail -n +2) <(mscgym show d/toy.jsonl --canonical | tail -n +2) && echo "the same trials"

try mscgym report a/toy.jsonl --serve --port 70000
