# The first line of --version has only the version; the others describe the build and its libraries.
. "$(dirname "$0")/../lib.sh"
mscgym --version >text
mscgym --version --json >version.json
head -1 text | sed 's/[0-9.]*$/VERSION/'
[ "$(head -1 text)" = "mscgym $(jq -r .version version.json)" ] && echo "the same version"
(cd / && mscgym --version) | cmp text - && echo "the same everywhere"
grep -n '/[a-z]*/' text # finds nothing: the text must not contain paths

# Other commands report the same values.
mscgym devices --json >devices.json
same() { # same NAME EXPECTED FILTER: compares the result of the jq filter
    found=$(jq -r "$3" version.json)
    [ "$found" = "$2" ] && echo "$1: the same" || echo "$1: '$found' and not '$2'"
}
library() {
    echo ".libraries[] | select(.name == \"$1\").version"
}
numerics=$(jq -r '.devices[] | select(.name == "cpu").numerics' devices.json)
same numerics "$numerics" '.backends[] | select(.name == "cpu").numerics'
same isa "$(jq -c .isa devices.json)" '.isa | tojson'
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)
same libc "${libc#* }" "$(library "${libc% *}")"
case $numerics in
*onednn-*) onednn=${numerics#*onednn-} onednn=${onednn%% *} ;;
*) onednn= ;;
esac
same oneDNN "$onednn" "$(library oneDNN)"
jq -r '.libraries[] | select(.name != "libmicrohttpd" and .name != "oneDNN" and .name != "toml++") | select(.version | test("^[0-9]+")).name' \
    version.json
jq -c '.build | [.compiler, .type, .target] | map(length > 0)' version.json
jq -c '.backends[] | [.name, (.numerics // .loader // .unavailable | length > 0)]' version.json
jq -r '.loops | has("compiled"), has("own")' version.json
# Builds with toml++ read TOML, and only these.
echo 'model = "m.onnx"' >c.toml
has=$(jq '[.libraries[].name] | index("toml++") != null' version.json)
mscgym config --show c.toml 2>&1 | grep -q 'built without toml++' && reads=false || reads=true
[ "$has" = "$reads" ] && echo "toml++ is listed if TOML can be read"
for key in $(jq -r '.libraries[].name' version.json); do
    grep -qF "library $key: " text || echo "$key is not in the text"
done

mscgym --version --help | head -1
try mscgym --version --jsn
try mscgym --version now
