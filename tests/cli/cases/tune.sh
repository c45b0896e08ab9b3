# `tune` needs a device, keeps its results, and refuses backends that cannot be tuned.
. "$(dirname "$0")/../lib.sh"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
try mscgym tune
try mscgym tune --device cpu
try mscgym tune --time soon
# On the first device, if there is one; software drivers count.
unset VK_DRIVER_FILES VK_ICD_FILENAMES
export MSC_VULKAN_FAMILY=u
# Vulkan drivers leak memory and are unloaded before the leak could be attributed to them.
export LSAN_OPTIONS=detect_leaks=0
if mscgym devices --json | grep -q '"vulkan:0"'; then
    mscgym tune --device vulkan --time 1s >table.txt || echo "tune fails"
    head -n 1 table.txt | grep -q "^ *rows *cols *depth *unit *tile *GFLOP/s *untuned$" ||
        echo "no table"
    [ "$(wc -l <table.txt)" -ge 3 ] || echo "nothing in the table"
    grep -qx "kept in $XDG_CACHE_HOME/mscgym" table.txt || echo "kept elsewhere"
    ls cache/mscgym/*.choices.json >/dev/null || echo "no file"
    # A damaged file is made again and is not an error.
    for file in cache/mscgym/*.choices.json; do
        echo '{' >"$file"
    done
    mscgym tune --device vulkan --time 1s --json 2>/dev/null | grep -q '"tile"' || echo "no JSON"
    grep -q '"schema": 1' cache/mscgym/*.choices.json || echo "not made anew"
fi
echo done
