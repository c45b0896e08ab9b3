# A dry run prints the cost of the search and writes nothing.
. "$(dirname "$0")/../lib.sh"
toy a 50
mscgym search a.json --dry-run | sed 's/about .*//'
ls
tiny b
mscgym search b.json --dry-run | sed 's/about .*//; s/up to .*//'
ls
