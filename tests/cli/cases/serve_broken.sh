# If a page can no longer be made, each request gets an error until it can be made again. A missing
# record is an error, not an empty list.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../serving.sh"

# until_code N: repeats the request until its status is N.
until_code() {
    until [ "$(code "/$token/")" = "$1" ]; do sleep 0.05; done
}
body() { ask "/$token/" | tr -d '\r' | sed '1,/^$/d'; }

toy a 20
mscgym search a.json >/dev/null
cp a/toy.jsonl whole.jsonl
serve a/toy.jsonl
code "/$token/"

echo "damaged:"
sed '1s/header/heaven/' whole.jsonl >a/toy.jsonl
until_code 500
sleep 1.2 # longer than the server's pause
code "/$token/"
body

echo "whole again:"
cp whole.jsonl a/toy.jsonl
until_code 200
body | grep -c 'data-live="1"'

echo "gone:"
rm a/toy.jsonl
until_code 500
body
cp whole.jsonl a/toy.jsonl
until_code 200
body | grep -c '<h1 id="r0-h">'
ends $server

echo "not yet there:"
serve new
code "/$token/"
mkdir new
cp whole.jsonl new/toy.jsonl
until body | grep -q 'toy.jsonl'; do sleep 0.05; done
ends $server
