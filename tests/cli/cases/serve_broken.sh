# A page that can no longer be made is told as that, each time it is asked for, until it can be made again; a
# record that is gone is no empty list.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../serving.sh"

# until_code N: asks until it is answered so.
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
sleep 1.2 # longer than it rests
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
