#include "cli/completion.h"

#include "base/str.h"

#include <string.h>

// Writes the case that completes an option's value: "--output | -o) _mscgym_files ;;".
static void write_value(struct msc_str *out, const struct msc_cli_option *o) {
    struct msc_str names = {0};
    msc_cli_complete_names(&names, o);
    msc_str_printf(out, "            --%s", o->name);
    if (o->letter) {
        msc_str_printf(out, " | -%c", o->letter);
    }
    msc_str_append(out, ")");
    if (names.length > 0) {
        msc_str_printf(out, " _mscgym_words \"%s\"", msc_str_text(&names));
    } else if (o->values == MSC_CLI_FOLDERS) {
        msc_str_append(out, " _mscgym_folders");
    } else if (o->values == MSC_CLI_FILES) {
        msc_str_append(out, " _mscgym_files");
    }
    msc_str_append(out, " ;;\n");
    out->failed = out->failed || names.failed;
    msc_str_finish(&names);
}

static void write_arguments(struct msc_str *out, const struct msc_cli_option *o) {
    bool has_files = false;
    struct msc_str names = {0};
    for (; o->name; o++) {
        if (o->is_positional) {
            msc_cli_complete_names(&names, o);
            has_files = has_files || msc_cli_completes_files(o);
        }
    }
    if (has_files) {
        msc_str_printf(out, "                *) _mscgym_files%s%s%s ;;\n",
                       names.length > 0 ? " \"" : "", msc_str_text(&names),
                       names.length > 0 ? "\"" : "");
    } else if (names.length > 0) {
        msc_str_printf(out, "                *) _mscgym_words \"%s\" ;;\n", msc_str_text(&names));
    }
    out->failed = out->failed || names.failed;
    msc_str_finish(&names);
}

static void write_command(struct msc_str *out, const struct msc_cli_command *c) {
    const struct msc_cli_option *tables[MSC_CLI_TABLE_COUNT];
    const char *blank = "";
    msc_cli_tables(tables, c);
    msc_str_printf(out, "    %s)\n        case $previous in\n", c->name);
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            if (o->argument) {
                write_value(out, o);
            }
        }
    }
    msc_str_append(out, "            *)\n                case $current in\n"
                        "                -*) _mscgym_words \"");
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            if (!o->is_positional) {
                msc_str_printf(out, "%s--%s", blank, o->name);
                blank = " ";
            }
        }
    }
    msc_str_append(out, "\" ;;\n");
    write_arguments(out, c->options);
    msc_str_append(out, "                esac\n                ;;\n        esac\n        ;;\n");
}

void msc_cli_complete_bash(struct msc_str *out, const struct msc_cli_command *const commands[]) {
    msc_str_append(
        out, "# bash completion for mscgym, printed by: mscgym completion bash\n\n"
             "# Offers the words of $1.\n"
             "_mscgym_words() {\n"
             "    mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\")\n"
             "}\n\n"
             "# Offers files, and the words of $1.\n"
             "_mscgym_files() {\n"
             "    mapfile -t COMPREPLY < <(compgen -f -W \"${1:-}\" -- \"$current\")\n"
             "}\n\n"
             "_mscgym_folders() {\n"
             "    mapfile -t COMPREPLY < <(compgen -d -- \"$current\")\n"
             "}\n\n"
             "_mscgym() {\n"
             "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
             "    # --name=value comes as three words.\n"
             "    if [ \"$current\" = = ]; then\n"
             "        current=\n"
             "    elif [ \"$previous\" = = ]; then\n"
             "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
             "    fi\n"
             "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
             "        _mscgym_words \"--help --version");
    for (size_t i = 0; commands[i]; i++) {
        if (!commands[i]->is_hidden) {
            msc_str_printf(out, " %s", commands[i]->name);
        }
    }
    msc_str_append(out, "\"\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; commands[i]; i++) {
        if (!commands[i]->is_hidden) {
            write_command(out, commands[i]);
        }
    }
    msc_str_append(out, "    esac\n}\n\ncomplete -o filenames -F _mscgym mscgym\n");
}
