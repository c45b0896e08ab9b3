#include "cli/completion.h"

#include "base/str.h"

#include <string.h>

// Writes text for use in single quotes: a backslash before each of `marks`, and ' written as '\''.
static void write_quoted(struct msc_str *out, const char *text, const char *marks) {
    for (; *text; text++) {
        if (*text == '\'') {
            msc_str_append(out, "'\\''");
            continue;
        }
        if (strchr(marks, *text)) {
            msc_str_char(out, '\\');
        }
        msc_str_char(out, *text);
    }
}

// Writes the action of _arguments that completes a value.
static void write_action(struct msc_str *out, const struct msc_cli_option *o) {
    struct msc_str names = {0};
    msc_cli_complete_names(&names, o);
    if (names.length > 0) {
        bool has_files = msc_cli_completes_files(o);
        msc_str_append(out, has_files ? " _mscgym_names_or_files " : "(");
        write_quoted(out, msc_str_text(&names), ":");
        msc_str_append(out, has_files ? "" : ")");
    } else if (o->values == MSC_CLI_FOLDERS) {
        msc_str_append(out, "_files -/");
    } else if (o->values == MSC_CLI_FILES) {
        msc_str_append(out, "_files");
    } else {
        msc_str_char(out, ' '); // completes nothing
    }
    out->failed = out->failed || names.failed;
    msc_str_finish(&names);
}

// Writes '--name=[help]:ARGUMENT:action'; for an option with a letter, {-n,--name=} replaces the
// name.
static void write_option(struct msc_str *out, const struct msc_cli_option *o) {
    const char *equals = o->argument ? "=" : "";
    const char *repeats = o->type == MSC_CLI_LIST ? "*" : "";
    if (o->letter) {
        msc_str_printf(out, "            '%s'{-%c,--%s%s}'[", repeats, o->letter, o->name, equals);
    } else {
        msc_str_printf(out, "            '%s--%s%s[", repeats, o->name, equals);
    }
    write_quoted(out, o->help, "[]\\");
    msc_str_char(out, ']');
    if (o->argument) {
        msc_str_char(out, ':');
        write_quoted(out, o->argument, ":\\");
        msc_str_char(out, ':');
        write_action(out, o);
    }
    msc_str_append(out, "' \\\n");
}

static void write_argument(struct msc_str *out, const struct msc_cli_option *o, size_t number) {
    if (o->type == MSC_CLI_LIST) {
        msc_str_printf(out, "            '*:%s:", o->name);
    } else {
        msc_str_printf(out, "            '%zu:%s:", number, o->name);
    }
    write_action(out, o);
    msc_str_append(out, "' \\\n");
}

static void write_command(struct msc_str *out, const struct msc_cli_command *c) {
    const struct msc_cli_option *tables[MSC_CLI_TABLE_COUNT];
    size_t n_arguments = 0;
    msc_cli_tables(tables, c);
    msc_str_printf(out, "    %s)\n        _arguments \\\n", c->name);
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            if (o->is_positional) {
                write_argument(out, o, ++n_arguments);
            } else {
                write_option(out, o);
            }
        }
    }
    msc_str_append(out, "            && return 0\n        ;;\n");
}

void msc_cli_complete_zsh(struct msc_str *out, const struct msc_cli_command *const commands[]) {
    msc_str_append(out, "#compdef mscgym\n"
                        "# zsh completion for mscgym, printed by: mscgym completion zsh\n\n"
                        "_mscgym_names_or_files() {\n"
                        "    compadd -- \"$@\"\n"
                        "    _files\n"
                        "}\n\n"
                        "_mscgym_commands() {\n"
                        "    local -a commands=(\n");
    for (size_t i = 0; commands[i]; i++) {
        const struct msc_cli_command *c = commands[i];
        if (!c->is_hidden) {
            msc_str_printf(out, "        '%s:", c->name);
            write_quoted(out, c->summary, "\\");
            msc_str_append(out, "'\n");
        }
    }
    msc_str_append(out,
                   "    )\n"
                   "    _describe command commands\n"
                   "}\n\n"
                   "_mscgym() {\n"
                   "    local curcontext=$curcontext state line\n"
                   "    typeset -A opt_args\n"
                   "    _arguments -C '(- *)--help[print the commands]' "
                   "'(- *)--version[print the version]' \\\n"
                   "        '1:command:_mscgym_commands' '*::argument:->argument' && return 0\n"
                   "    case $line[1] in\n");
    for (size_t i = 0; commands[i]; i++) {
        if (!commands[i]->is_hidden) {
            write_command(out, commands[i]);
        }
    }
    // If zsh finds the file in its function path, the file runs as the function. If the file is
    // sourced, it registers the function.
    msc_str_append(out, "    esac\n"
                        "    return 1\n"
                        "}\n\n"
                        "if [ \"$funcstack[1]\" = _mscgym ]; then\n"
                        "    _mscgym \"$@\"\n"
                        "else\n"
                        "    compdef _mscgym mscgym\n"
                        "fi\n");
}
