// `mscgym manual TEMPLATE`, for the build: prints the manual page (roff) from man/mscgym.1.in.
//
// Lines of the template that begin with @ are replaced:
//     @COMMAND search     the heading of a command: its name and usage
//     @OPTIONS search     the rows of the command's own table
//     @OPTIONS --trials   the rows of the shared table (of several commands) that has this option
// The template is refused unless every command and every table occurs in it.
#include "cli/cli.h"

#include "base/file.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

struct manual_values {
    struct msc_cli_common common;
    const char *template;
};

static const struct msc_cli_option options[] = {
    {.name = "TEMPLATE",
     .type = MSC_CLI_TEXT,
     .help = "manual page with @COMMAND and @OPTIONS lines",
     .offset = offsetof(struct manual_values, template),
     .is_positional = true,
     .is_required = true},
    {0},
};

// Writes plain text as roff, which takes a dot or a quote at the start of a line as a request.
static void write_text(struct msc_str *out, const char *text) {
    if (*text == '.' || *text == '\'') {
        msc_str_append(out, "\\&");
    }
    for (; *text; text++) {
        if (*text == '-' || *text == '\\') {
            msc_str_append(out, *text == '-' ? "\\-" : "\\e");
        } else {
            msc_str_char(out, *text);
        }
    }
}

static void write_option(struct msc_str *out, const struct msc_cli_option *o) {
    msc_str_append(out, ".TP\n");
    if (o->is_positional) {
        msc_str_printf(out, "\\fI%s\\fR", o->name);
    } else {
        if (o->letter) {
            msc_str_printf(out, "\\fB\\-%c\\fR, ", o->letter);
        }
        msc_str_append(out, "\\fB\\-\\-");
        write_text(out, o->name);
        msc_str_append(out, "\\fR");
        if (o->argument) {
            msc_str_append(out, " \\fI");
            write_text(out, o->argument);
            msc_str_append(out, "\\fR");
        }
    }
    msc_str_char(out, '\n');
    msc_str_char(out, (char)toupper(o->help[0]));
    write_text(out, o->help + 1);
    msc_str_append(out, ".\n");
    if (o->details) {
        write_text(out, o->details);
        msc_str_char(out, '\n');
    }
}

// Writes the usage. Words in capitals are arguments, and words that begin with a dash are options.
static void write_usage(struct msc_str *out, const char *usage) {
    while (*usage) {
        size_t length = strspn(usage, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        bool is_argument = length > 0;
        if (!is_argument && *usage == '-') {
            length = strcspn(usage, " ]|");
        }
        char word[32];
        if (length > 0 && length < sizeof word) {
            memcpy(word, usage, length);
            word[length] = '\0';
            msc_str_append(out, is_argument ? "\\fI" : "\\fB");
            write_text(out, word);
            msc_str_append(out, "\\fR");
            usage += length;
        } else {
            msc_str_char(out, *usage++);
        }
    }
}

static void write_heading(struct msc_str *out, const struct msc_cli_command *c) {
    const char *at = c->usage;
    msc_str_append(out, ".TP\n");
    for (;;) { // each line of the usage is one form of the command
        size_t length = strcspn(at, "\n");
        struct msc_str line = {0};
        msc_str_append_n(&line, at, length);
        msc_str_printf(out, "\\fB%s\\fR ", c->name);
        write_usage(out, msc_str_text(&line));
        msc_str_char(out, '\n');
        msc_str_finish(&line);
        if (!at[length]) {
            return;
        }
        msc_str_append(out, ".TQ\n");
        at += length + 1;
    }
}

// ---- The template -----------------------------------------------------------------------------

#define MAX_SEEN 128

struct page {
    const struct msc_cli_command *const *commands;
    struct msc_str text;
    const void *seen[MAX_SEEN]; // commands and tables that occurred
    size_t n_seen;
};

static void note_seen(struct page *page, const void *what) {
    if (page->n_seen < MAX_SEEN) {
        page->seen[page->n_seen++] = what;
    }
}

static bool was_seen(const struct page *page, const void *what) {
    for (size_t i = 0; i < page->n_seen; i++) {
        if (page->seen[i] == what) {
            return true;
        }
    }
    return false;
}

// Finds the table that has the option among the tables shared by several commands.
static const struct msc_cli_option *find_shared(const struct page *page, const char *name) {
    for (size_t i = 0; page->commands[i]; i++) {
        const struct msc_cli_option *tables[MSC_CLI_TABLE_COUNT];
        msc_cli_tables(tables, page->commands[i]);
        for (size_t t = 1; tables[t]; t++) {
            for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
                if (strcmp(o->name, name) == 0) {
                    return tables[t];
                }
            }
        }
    }
    return NULL;
}

static enum msc_status write_marked(struct page *page, const char *line) {
    bool is_command = strncmp(line, "@COMMAND ", 9) == 0;
    if (!is_command && strncmp(line, "@OPTIONS ", 9) != 0) {
        return MSC_FAIL(MSC_E_FORMAT, "line \"%s\": expected @COMMAND or @OPTIONS", line);
    }
    const char *name = line + 9;
    bool is_shared = !is_command && strncmp(name, "--", 2) == 0;
    const struct msc_cli_command *command =
        is_shared ? NULL : msc_cli_find_command(page->commands, name);
    const struct msc_cli_option *table = is_shared ? find_shared(page, name + 2)
                                         : command ? command->options
                                                   : NULL;
    if (!table) {
        return MSC_FAIL(MSC_E_FORMAT, "line \"%s\": there is no such command or option", line);
    }
    if (is_command) {
        write_heading(&page->text, command);
        note_seen(page, command);
        return MSC_OK;
    }
    for (const struct msc_cli_option *o = table; o->name; o++) {
        write_option(&page->text, o);
    }
    note_seen(page, table);
    return MSC_OK;
}

static enum msc_status check_seen(const struct page *page) {
    for (size_t i = 0; page->commands[i]; i++) {
        const struct msc_cli_command *c = page->commands[i];
        const struct msc_cli_option *tables[MSC_CLI_TABLE_COUNT];
        msc_cli_tables(tables, c);
        if (c->is_hidden) {
            continue;
        }
        if (!was_seen(page, c)) {
            return MSC_FAIL(MSC_E_FORMAT, "command %s is missing: add a line @COMMAND %s", c->name,
                            c->name);
        }
        for (size_t t = 0; tables[t]; t++) {
            if (tables[t]->name && !was_seen(page, tables[t])) {
                return MSC_FAIL(MSC_E_FORMAT, "options of %s are missing: add a line @OPTIONS %s%s",
                                c->name, t == 0 ? "" : "--", t == 0 ? c->name : tables[t]->name);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status write_page(struct page *page, char *template) {
    for (char *line = template; *line;) {
        size_t length = strcspn(line, "\n");
        bool is_last = line[length] == '\0';
        line[length] = '\0';
        if (line[0] == '@') {
            MSC_TRY(write_marked(page, line));
        } else {
            msc_str_printf(&page->text, "%s\n", line);
        }
        line += length + !is_last;
    }
    return check_seen(page);
}

static int cmd_manual(const struct msc_cli_call *call, void *payload) {
    const struct manual_values *v = payload;
    struct page page = {.commands = call->commands};
    char *template = NULL;
    size_t n_bytes;
    enum msc_status status = msc_file_read(&template, &n_bytes, v->template);
    if (status == MSC_OK) {
        status = msc_status_prefix(write_page(&page, template), "%s", v->template);
    }
    if (status == MSC_OK) {
        status = msc_cli_print_str(&page.text);
    }
    msc_free(template);
    msc_str_finish(&page.text);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_manual = {
    .name = "manual",
    .summary = "prints the manual page from its template",
    .usage = "TEMPLATE",
    .examples = "  mscgym manual man/mscgym.1.in > mscgym.1\n",
    .options = options,
    .is_hidden = true,
    .values_size = sizeof(struct manual_values),
    .run = cmd_manual,
};
