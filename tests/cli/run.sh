#!/bin/bash
# Runs one test of the command line.
#
#     run.sh MSCGYM CASE
#
# cases/CASE.sh runs in an empty folder of its own, with mscgym in the PATH and $FILES naming
# tests/cli/files. Its standard output must be that of cases/CASE.out, exactly; its standard error
# must match the pattern in cases/CASE.err (as in bash's [[ == ]]; no file: it must be empty), and
# its exit code be that in cases/CASE.rc (no file: 0). MSC_UPDATE_GOLDEN=1 rewrites CASE.out.
set -u
mscgym=$(realpath "$1")
case_name=$2
here=$(dirname "$(realpath "$0")")
base=$here/cases/$case_name
FILES=$here/files
export FILES

# A link, so that the tests find the program under its own name.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin" "$folder/work"
ln -s "$mscgym" "$folder/bin/mscgym"
PATH=$folder/bin:$PATH
cd "$folder/work" || exit 1

# Texts are compared, and cut by tools that take bytes or characters as the locale says.
LC_ALL=C.UTF-8
export LC_ALL

# No runtime but what a case sets, whatever is installed here.
MSCGYM_RUNTIME=no/runtime
export MSCGYM_RUNTIME

# The cases speak of the cpu; a GPU that happens to be here shall not change what they say.
VK_DRIVER_FILES=/dev/null
VK_ICD_FILENAMES=/dev/null
export VK_DRIVER_FILES VK_ICD_FILENAMES

bash "$base.sh" >"$folder/out" 2>"$folder/err"
code=$?
failed=0

# What LeakSanitizer says of a process that is killed while it looks for leaks at its end.
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
