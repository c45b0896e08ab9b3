# A worker opens the GPU that its Slurm job was assigned, by its UUID. A script replaces srun. Workers
# of one machine take equal devices in turn.
. "$(dirname "$0")/../lib.sh"
program=$(command -v mscgym)
mkdir bin
cat >bin/srun <<'END'
#!/bin/sh
echo "$@" >>words.txt
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
END
chmod +x bin/srun
PATH=$PWD/bin:$PATH
search() {
    mscgym search d.json --restart --quiet --cluster slurm:2 --worker-program "$program" "$@"
}
tiny d
# The numerics are those of a GPU, so each job requests one.
timeout 20 mscgym search d.json --quiet --numerics 'vulkan/1 NVIDIA A100, …' --cluster slurm:1 \
    --worker-program "$program" 2>&1 | grep -o 'no worker is left'
grep -o -e '--gres=[^ ]*' words.txt
rm words.txt
# Uses the first device, which may be a software driver; these are never assigned.
unset VK_DRIVER_FILES VK_ICD_FILENAMES
export LSAN_OPTIONS=detect_leaks=0 # Vulkan drivers leak memory.
uuid=$(mscgym devices --json | jq -r '.vulkan[0] | select(.kind == "software") | .uuid')
if [ "$uuid" ]; then
    for device in vulkan "vulkan:uuid=$uuid"; do
        mscgym search d.json --restart --quiet --device "$device" >/dev/null
        mscgym show d/tiny.jsonl --canonical >alone.txt
        CUDA_VISIBLE_DEVICES=GPU-$uuid search --device "$device" >/dev/null
        mscgym show d/tiny.jsonl --canonical >own.txt
        cmp alone.txt own.txt || echo "other records with $device"
    done
    grep -e --gres words.txt
    CUDA_VISIBLE_DEVICES=GPU-12345678 search --device vulkan 2>&1 | sed 's/is refused[^:]*/is refused/' |
        grep -q "worker [0-9]* is refused: it reported: device 'vulkan:uuid=GPU-12345678': no device matches; there .* (uuid=$uuid" ||
        echo 'another GPU is opened'
    CUDA_VISIBLE_DEVICES= search --device vulkan >/dev/null || echo 'a software driver needs a GPU'
    # A driver that is listed twice gives two equal devices.
    driver=$(ls /usr/share/vulkan/icd.d/lvp_icd.*.json 2>/dev/null | head -1)
    if [ "$driver" ]; then
        cp "$driver" a.json
        cp "$driver" b.json
        export VK_DRIVER_FILES=$PWD/a.json:$PWD/b.json VK_ICD_FILENAMES=$PWD/a.json:$PWD/b.json
        mscgym search d.json --restart --quiet --device vulkan >/dev/null
        mscgym show d/tiny.jsonl --canonical >alone.txt
        mscgym search d.json --restart --quiet --device vulkan --cluster local:2 >/dev/null
        mscgym show d/tiny.jsonl --canonical >both.txt
        cmp alone.txt both.txt || echo 'other records on two devices'
        mscgym search d.json --restart --device vulkan --cluster local:2 --dry-run |
            grep -q 'workers: a round of' || echo 'two devices count as one'
        mscgym search d.json --restart --device vulkan:0 --cluster local:2 --dry-run |
            grep -q 'share the device' || echo 'a named device counts as two'
    fi
fi
echo done
