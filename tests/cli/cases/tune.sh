# Tuning needs a device, keeps what it finds, and says no to what cannot be tuned.
. "$(dirname "$0")/../lib.sh"
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
try mscgym tune
try mscgym tune --device cpu
try mscgym tune --time soon
# On the first device there is, be it a software driver: as if it had been so without one.
unset VK_DRIVER_FILES VK_ICD_FILENAMES
export MSC_VULKAN_FAMILY=u
# Drivers lose memory, and are unloaded before anyone could tell that it was theirs.
export LSAN_OPTIONS=detect_leaks=0
if mscgym devices --json | grep -q '"vulkan:0"'; then
    mscgym tune --device vulkan --time 1s >table.txt || echo "tune fails"
    head -n 1 table.txt | grep -q "^ *rows *cols *depth *unit *tile *GFLOP/s *untuned$" ||
        echo "no table"
    [ "$(wc -l <table.txt)" -ge 3 ] || echo "nothing in the table"
    grep -qx "kept in $XDG_CACHE_HOME/mscgym" table.txt || echo "kept elsewhere"
    ls cache/mscgym/*.tiles.json >/dev/null || echo "no file"
    # A damaged file is no reason to fail, and is made anew.
    for file in cache/mscgym/*.tiles.json; do
        echo '{' >"$file"
    done
    mscgym tune --device vulkan --time 1s --json 2>/dev/null | grep -q '"tile"' || echo "no JSON"
    grep -q '"schema": 1' cache/mscgym/*.tiles.json || echo "not made anew"
fi
echo done
