#include "cli/serving.h"

#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "model/output.h"
#include "report/document.h"
#include "report/page.h"

#include <string.h>

struct report_values {
    struct msc_cli_common common;
    struct msc_cli_list records;
    const char *output;
    bool serve;
    int64_t port;
};

#define REPORT(member) offsetof(struct report_values, member)

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "record of a search; several are shown side by side; with --serve also folders",
     .offset = REPORT(records),
     .is_positional = true,
     .is_required = true},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "page to write (default: the name of the first record, ending in .html)",
     .offset = REPORT(output)},
    {.name = "serve",
     .type = MSC_CLI_FLAG,
     .help = "serve the page to browsers on this machine until Ctrl-C, always up to date",
     .details = "For a folder it serves a list of its records, running searches first.",
     .offset = REPORT(serve)},
    {.name = "port",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "with --serve: listen on this port (default: any free port)",
     .needs = "serve",
     .offset = REPORT(port)},
    {0},
};

// Names the page after the record: "a.html" for "a.jsonl".
static char *name_output(struct msc_arena *arena, const char *record) {
    static const char end[] = ".jsonl";
    size_t n = strlen(record), m = sizeof end - 1;
    bool has_end = n > m && strcmp(record + n - m, end) == 0;
    return msc_arena_printf(arena, "%.*s.html", (int)(has_end ? n - m : n), record);
}

static enum msc_status claim_page(struct msc_file_set *files, const struct report_values *v,
                                  const char *path) {
    for (size_t i = 0; i < v->records.n; i++) {
        MSC_TRY(msc_file_set_read(files, "a record", v->records.items[i]));
    }
    return msc_output_claim(files, MSC_OUTPUT_PAGE, "the page", path);
}

static enum msc_status write_report(const struct msc_cli_call *call,
                                    const struct report_values *v) {
    const struct msc_document_options o = {
        .paths = v->records.items, .n = v->records.n, .log = &call->console->log};
    const char *path = v->output ? v->output : name_output(call->arena, v->records.items[0]);
    struct msc_str page = {0}, said = {0};
    struct msc_file_set files = {0};
    cJSON *document = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY_OUT(claim_page(&files, v, path));
    MSC_TRY_OUT(msc_document_create(&document, &o));
    MSC_TRY_OUT(msc_page_write(&page, document, &(struct msc_page_options){0}));
    MSC_TRY_OUT(msc_file_write(path, msc_str_text(&page), page.length));
    msc_str_append(&said, "report: ");
    msc_shown_append(&said, path);
    msc_str_char(&said, '\n');
    status = msc_cli_print_str(&said);
out:
    cJSON_Delete(document);
    msc_file_set_finish(&files);
    msc_str_finish(&said);
    msc_str_finish(&page);
    return status;
}

static enum msc_status print_document(const struct msc_cli_call *call,
                                      const struct report_values *v) {
    const struct msc_document_options o = {
        .paths = v->records.items, .n = v->records.n, .log = &call->console->log};
    cJSON *document = NULL;
    MSC_TRY(msc_document_create(&document, &o));
    enum msc_status status = msc_cli_print_json(document);
    cJSON_Delete(document);
    return status;
}

static int cmd_report(const struct msc_cli_call *call, void *payload) {
    const struct report_values *v = payload;
    enum msc_status status = v->serve ? msc_cli_serve(v->records.items, v->records.n, v->port)
                             : v->common.json ? print_document(call, v)
                                              : write_report(call, v);
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_report = {
    .name = "report",
    .summary = "writes records as a page for a browser",
    .usage = "RECORD... [options]",
    .description = "Writes one self-contained HTML file: what to deploy and why, charts and tables "
                   "of the search, and the network with its plan. Several records are shown side "
                   "by side. --json prints the contents. A served page follows a running search. "
                   "Its address holds a token; requests without it are refused.",
    .examples = "  mscgym report msc_workspace/digits.jsonl\n"
                "  mscgym report a.jsonl b.jsonl -o compared.html\n"
                "  mscgym report msc_workspace --serve\n",
    .options = options,
    .values_size = sizeof(struct report_values),
    .run = cmd_report,
};
