# A warning before the start names choices that the target stores as wide as another.
. "$(dirname "$0")/../lib.sh"
widths() {
    echo "$1"
    tiny "$1" "$2"
    sed -i "s/{\"bits\": 8}, {\"bits\": 4}/$3/; s/\"verbose\": \"error\"/\"verbose\": \"warning\"/" "$1.json"
    mscgym search "$1.json" --dry-run 2>&1 | grep 'only loses precision\|use such choices' || true
}
target='"target": "onnxruntime", "sites": "all"'
widths both "$target" '{"bits": 8}, {"bits": 6}'
widths weights "$target, \"activations\": {\"float\": true}" '{"bits": 8}, {"bits": 6}'
widths wide "$target, \"activations\": {\"float\": true}" '{"bits": 16}, {"bits": 12}'
widths any '"target": "generic"' '{"bits": 8}, {"bits": 6}'
# No warning if a rule keeps such choices from activations. If activations and weights share
# choices, a rule cannot do that.
widths rule "$target, \"rules\": [{\"kind\": \"activation\", \"choices\": [\"8\"]}]" '{"bits": 8}, {"bits": 6}'
widths together "$target, \"group\": \"joint\"" '{"bits": 8}, {"bits": 6}'
