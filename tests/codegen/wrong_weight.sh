#!/bin/bash
# wrong_weight.sh PROGRAM FOLDER
#
# Changes the last weight in a copy of a generated program's folder. The program must then find that
# an output is not as recorded.
set -eu
program=$1
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp "$2"/*.safetensors "$copy"
size=$(stat -c %s "$copy/weights.safetensors")
printf '\x00\x00\xc8\x42' | dd of="$copy/weights.safetensors" bs=1 seek=$((size - 4)) conv=notrunc status=none
code=0
said=$("$program" "$copy" 2>&1) || code=$?
echo "$said"
[ "$code" = 1 ] && [[ "$said" == *"outputs are not as recorded"* ]]
