#!/bin/bash
# Runs one test of the command line.
#
#     run.sh MSCGYM CASE
#
# Runs cases/CASE.sh in an empty folder, with mscgym in the PATH and $FILES set to tests/cli/files.
# The test passes if
# - standard output equals cases/CASE.out,
# - standard error matches the pattern in cases/CASE.err, as in bash's [[ == ]] (no file: is empty),
# - the exit code is that in cases/CASE.rc (no file: 0).
# MSC_UPDATE_GOLDEN=1 rewrites CASE.out.
set -u
mscgym=$(realpath "$1")
case_name=$2
here=$(dirname "$(realpath "$0")")
base=$here/cases/$case_name
FILES=$here/files
export FILES

# A link named mscgym, whatever the program's file is called.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/work"
ln -s "$mscgym" "$folder/bin/mscgym"
PATH=$folder/bin:$PATH
cd "$folder/work" || exit 1

# The locale decides whether tools that sort or cut text count bytes or characters.
LC_ALL=C.UTF-8
export LC_ALL

# Without a runtime, whatever is installed on this machine; a case may set one.
MSCGYM_RUNTIME=no/runtime
export MSCGYM_RUNTIME

# Without Vulkan devices, so that a GPU of this machine does not change the output.
VK_DRIVER_FILES=/dev/null
VK_ICD_FILENAMES=/dev/null
export VK_DRIVER_FILES VK_ICD_FILENAMES

bash "$base.sh" >"$folder/out" 2>"$folder/err"
code=$?
failed=0

# A message of LeakSanitizer if a process is killed during its search for leaks.
sed -i '/^==[0-9]*==Unable to get registers from thread [0-9]*\.$/d' "$folder/out" "$folder/err"

if [ "${MSC_UPDATE_GOLDEN:-}" = 1 ]; then
    cp "$folder/out" "$base.out"
fi
if ! diff -u "$base.out" "$folder/out"; then
    echo "$case_name: standard output differs from $base.out"
    failed=1
fi
errors=$(cat "$folder/err")
pattern=
[ -f "$base.err" ] && pattern=$(cat "$base.err")
# shellcheck disable=SC2053
if [[ "$errors" != $pattern ]]; then
    printf '%s: standard error does not match %s.err; it is:\n%s\n' "$case_name" "$base" "$errors"
    failed=1
fi
expected=0
[ -f "$base.rc" ] && expected=$(cat "$base.rc")
if [ "$code" != "$expected" ]; then
    echo "$case_name: exit code $code, expected $expected; standard error:"
    cat "$folder/err"
    failed=1
fi
exit "$failed"
