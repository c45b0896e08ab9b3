# fish completes commands, options and values of options.
. "$(dirname "$0")/../lib.sh"
mscgym completion fish >mscgym.fish
touch digits.json
mkdir digits
HOME=$PWD
export HOME
for line in 'mscgym sea' 'mscgym search --ba' 'mscgym search --color al' 'mscgym search --color=al' \
    'mscgym search digits.j' 'mscgym export --tensorboard dig' 'mscgym agents ev' 'mscgym completion '; do
    echo "$line: $(fish --no-config -c "source mscgym.fish; complete -C '$line'" | cut -f 1 | tr '\n' ' ')"
done
