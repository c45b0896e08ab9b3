# zsh completes commands, options and values of options.
. "$(dirname "$0")/../lib.sh"
mkdir functions
mscgym completion zsh >functions/_mscgym
touch digits.json
HOME=$PWD
export HOME
for line in 'mscgym sea' 'mscgym search --ba' 'mscgym search --color al' 'mscgym search --color=al' \
    'mscgym search digits.j' 'mscgym agents ev' 'mscgym completion '; do
    echo "$line: $(timeout 60 zsh -f "$FILES/capture.zsh" "$PWD/functions" "$line" | tr '\n' ' ')"
done
