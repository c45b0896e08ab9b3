#include "cli/completion.h"

#include "base/str.h"

#include <string.h>

static void write_quoted(struct msc_str *out, const char *text) {
    msc_str_char(out, '\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') {
            msc_str_char(out, '\\');
        }
        msc_str_char(out, *text);
    }
    msc_str_char(out, '\'');
}

static void write_names(struct msc_str *out, const struct msc_cli_option *o) {
    struct msc_str names = {0};
    msc_cli_complete_names(&names, o);
    if (names.length > 0) {
        msc_str_append(out, " -a ");
        write_quoted(out, msc_str_text(&names));
    }
    out->failed = out->failed || names.failed;
    msc_str_finish(&names);
}

// Writes an option. With -x, its value is not a file; with -r -F, its value is a file.
static void write_option(struct msc_str *out, const char *command, const struct msc_cli_option *o) {
    msc_str_printf(out, "complete -c mscgym -n '__fish_seen_subcommand_from %s'", command);
    if (!o->is_positional) {
        msc_str_printf(out, " -l %s", o->name);
    }
    if (o->letter) {
        msc_str_printf(out, " -s %c", o->letter);
    }
    write_names(out, o);
    if (o->values == MSC_CLI_FOLDERS) {
        msc_str_append(out, " -x -a '(__fish_complete_directories)'");
    } else if (msc_cli_completes_files(o)) {
        msc_str_append(out, o->is_positional ? " -F" : " -r -F");
    } else if (o->argument) {
        msc_str_append(out, " -x");
    }
    if (!o->is_positional) {
        msc_str_append(out, " -d ");
        write_quoted(out, o->help);
    }
    msc_str_char(out, '\n');
}

static void write_command(struct msc_str *out, const struct msc_cli_command *c) {
    const struct msc_cli_option *tables[MSC_CLI_TABLE_COUNT];
    msc_cli_tables(tables, c);
    msc_str_printf(out, "\ncomplete -c mscgym -n __fish_use_subcommand -a %s -d ", c->name);
    write_quoted(out, c->summary);
    msc_str_char(out, '\n');
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            write_option(out, c->name, o);
        }
    }
}

void msc_cli_complete_fish(struct msc_str *out, const struct msc_cli_command *const commands[]) {
    msc_str_append(out, "# fish completion for mscgym, printed by: mscgym completion fish\n\n"
                        "complete -c mscgym -f\n"
                        "complete -c mscgym -n __fish_use_subcommand -l help -d "
                        "'print the commands'\n"
                        "complete -c mscgym -n __fish_use_subcommand -l version -d "
                        "'print the version'\n");
    for (size_t i = 0; commands[i]; i++) {
        if (!commands[i]->is_hidden) {
            write_command(out, commands[i]);
        }
    }
}
