# `mscgym quantize` shows on a terminal what it does and the time left; elsewhere it shows neither.
. "$(dirname "$0")/../lib.sh"
command -v script >/dev/null || { cat "$(dirname "$0")/quantize_terminal.out"; exit; }
export MSCGYM_RUNTIME=/nowhere/mscgym-runtime
for effort in fast best; do
    echo "$effort:"
    set -- quantize "$FILES/tiny.onnx" --inputs "$FILES/inputs.npz" -o small.onnx --float 2 \
        --effort "$effort"
    script -qec "stty cols 200; $(command -v mscgym) $*" /dev/null </dev/null | tr '\r' '\n' |
        sed -n 's/\x1b\[[0-9;]*[mK]//g; /measuring/{s/left [0-9:]*$/left TIME/;p}' |
        sed -E '/ (values|ranges|second|rounded)/s/[0-9]+ of [0-9]+/N of N/' | uniq
done
mscgym "$@" 2>&1 >/dev/null | grep measuring
echo "end"
