#include "cli/help.h"

#include "base/str.h"
#include "base/style.h"

#include <ctype.h>
#include <string.h>

#define WIDTH 80       // of a line
#define NAMES_WIDTH 29 // column of an option's help
#define COMMAND_WIDTH 11

static void write_heading(struct msc_str *out, const char *text) {
    msc_style_begin(out, MSC_STYLE_HEADING);
    msc_str_append(out, text);
    msc_style_end(out);
}

// Appends words from column `column` on and breaks lines at WIDTH; further lines begin at `indent`.
static void write_words(struct msc_str *out, size_t column, size_t indent, const char *text) {
    for (bool is_first = true; *text; is_first = false) {
        size_t length = strcspn(text, " ");
        if (!is_first && column + 1 + length > WIDTH) {
            msc_str_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first) {
            msc_str_char(out, ' ');
            column++;
        }
        msc_str_append_n(out, text, length);
        column += length;
        text += length + strspn(text + length, " ");
    }
    msc_str_char(out, '\n');
}

static void write_option(struct msc_str *out, const struct msc_cli_option *o) {
    size_t begin = out->length;
    if (o->is_positional) {
        msc_str_printf(out, "  %s%s", o->name, o->type == MSC_CLI_LIST ? "..." : "");
    } else {
        msc_str_printf(out, o->letter ? "  -%c, " : "      ", o->letter);
        msc_str_printf(out, "--%s%s%s", o->name, o->argument ? " " : "",
                       o->argument ? o->argument : "");
    }
    size_t length = out->length - begin;
    int blanks = length + 2 <= NAMES_WIDTH ? (int)(NAMES_WIDTH - length) : 2;
    msc_str_printf(out, "%*s", blanks, "");
    write_words(out, length + (size_t)blanks, NAMES_WIDTH, o->help);
}

void msc_cli_help_options(struct msc_str *out, const struct msc_cli_option options[]) {
    for (const struct msc_cli_option *o = options; o->name; o++) {
        write_option(out, o);
    }
}

void msc_cli_help(struct msc_str *out, const struct msc_cli_command *const commands[]) {
    write_heading(out, "usage:");
    msc_str_append(out, " mscgym COMMAND [arguments]\n\n"
                        "Searches for the best way to compress a trained neural network.\n\n");
    for (size_t i = 0; commands[i]; i++) {
        const struct msc_cli_command *c = commands[i];
        if (!c->is_hidden) {
            msc_str_printf(out, "  %-*s  %s\n", COMMAND_WIDTH, c->name, c->summary);
        }
    }
    msc_str_append(
        out, "\nmscgym COMMAND --help explains a command. mscgym --version prints the version, "
             "the\nbuild and the libraries in use.\n"
             "Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 problem "
             "of\nthe machine (memory, disk, device), 4 stopped on request: resume "
             "continues.\n");
}

void msc_cli_help_command(struct msc_str *out, const struct msc_cli_command *command) {
    const struct msc_cli_option *tables[MSC_CLI_TABLE_COUNT];
    msc_cli_tables(tables, command);
    write_heading(out, "usage:");
    for (const char *at = command->usage; at;) {
        size_t length = strcspn(at, "\n");
        msc_str_printf(out, "%s mscgym %s ", at == command->usage ? "" : "      ", command->name);
        msc_str_append_n(out, at, length);
        msc_str_char(out, '\n');
        at = at[length] ? at + length + 1 : NULL;
    }
    msc_str_printf(out, "\n%c%s.\n", toupper(command->summary[0]), command->summary + 1);
    if (command->description) {
        msc_str_char(out, '\n');
        write_words(out, 0, 0, command->description);
    }
    msc_str_char(out, '\n');
    for (size_t t = 0; tables[t]; t++) {
        msc_cli_help_options(out, tables[t]);
    }
    msc_str_char(out, '\n');
    write_heading(out, "examples:");
    msc_str_printf(out, "\n%s", command->examples);
}
