# bash completion for mscgym

_mscgym() {
    local current=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local commands="search sensitivity quantize resume show watch report verify salvage export run bench track graph config envs agents gym devices tune"
    local basic="--json --quiet --log-level --color --help"
    local models="--device --isa --threads --memory --bind"
    local options=""

    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$current")
        return
    fi
    case "$previous" in
    --device)
        mapfile -t COMPREPLY < <(compgen -W "auto cpu vulkan" -- "$current")
        return
        ;;
    --runtime)
        mapfile -t COMPREPLY < <(compgen -W "onnxruntime openvino cpu" -- "$current")
        return
        ;;
    --baseline)
        mapfile -t COMPREPLY < <(compgen -W "uniform greedy" -- "$current")
        return
        ;;
    --log)
        mapfile -t COMPREPLY < <(compgen -W "tensorboard:" -- "$current")
        return
        ;;
    --log-level)
        mapfile -t COMPREPLY < <(compgen -W "debug info warning error" -- "$current")
        return
        ;;
    --color)
        mapfile -t COMPREPLY < <(compgen -W "auto always never" -- "$current")
        return
        ;;
    --cluster)
        mapfile -t COMPREPLY < <(compgen -W "local: ray:auto ray: slurm:" -- "$current")
        return
        ;;
    --isa)
        mapfile -t COMPREPLY < <(compgen -W "$(mscgym devices --json 2>/dev/null |
            tr -d ' "\n' | sed -n 's/.*isa:\[\([^]]*\)\].*/\1/p' | tr ',' ' ')" -- "$current")
        return
        ;;
    --threads | --memory | --bind | --numerics | --trials | --time | --top | --sample | --seed | --trial | \
        --repeat | --entry | --state | --tensor | --rounds | --batch | --float | \
        --pairs | --port | --loss-tensors | --outputs | --exclude | --atol | \
        --limit)
        return
        ;;
    esac
    case "${COMP_WORDS[1]}" in
    search)
        options="--entry --record --trials --time --log --cluster --numerics --node-path --copy-to --worker-program --on-improve --on-end --serve --port --dry-run --retry-failed --warm-start
            --accept-new-numerics --baseline --warm-from --restart $models"
        ;;
    sensitivity)
        options="--pairs --csv --entry --record --trials --time --log --cluster --numerics --node-path --copy-to --worker-program --on-improve --on-end --serve --port --dry-run --retry-failed --warm-start
            --accept-new-numerics --warm-from --restart $models"
        ;;
    quantize) options="--inputs --output --labels --target --sites --float --loss-tensors --outputs --exclude --batch --atol $models" ;;
    resume)
        options="--trials --time --log --cluster --numerics --node-path --copy-to --worker-program --on-improve --on-end --serve --port --dry-run --retry-failed --warm-start --accept-new-numerics
            --allow-plugins $models"
        ;;
    show) options="--best --top --pareto --csv --phases --allow-plugins --canonical" ;;
    watch) options="--once" ;;
    report) options="--output --serve --port" ;;
    verify) options="--trials --sample --seed --allow-plugins $models" ;;
    salvage) options="--output" ;;
    export)
        options="--trial --model --weights --strategy --recalibrate --dataset --save-strategy --output
            --optuna --tensorboard --allow-plugins $models"
        ;;
    run) options="--inputs --samples --input --output --state --tensor --strategy --repeat --allow-plugins $models" ;;
    bench) options="--runtime --input --batch --rounds --threads --bind" ;;
    track) options="--inputs --samples --strategy --from --allow-plugins $models" ;;
    graph) options="--prototxt --placement --sites --channels --weights --target --output $models" ;;
    config) options="--show --allow-plugins" ;;
    envs | agents) options="--check --limit" ;;
    gym) options="--trials $models" ;;
    devices) options="--isa" ;;
    tune) options="--device --time" ;;
    esac
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options $basic" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}

complete -o filenames -F _mscgym mscgym
