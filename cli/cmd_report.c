#include "cli/serving.h"

#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "model/output.h"
#include "report/document.h"
#include "report/figures.h"
#include "report/layers.h"
#include "report/page.h"

#include <string.h>

struct report_values {
    struct msc_cli_common common;
    struct msc_cli_list records;
    const char *output;
    const char *figures;
    bool layers, allow_plugins;
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
    {.name = "figures",
     .argument = "FOLDER",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FOLDERS,
     .help = "also write the charts as SVG files into this folder",
     .offset = REPORT(figures)},
    {.name = "layers",
     .type = MSC_CLI_FLAG,
     .help = "also run the delivered plan: error, time, bytes and weights of each layer",
     .details = "Loads the model and the samples that the record names.",
     .offset = REPORT(layers)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust records: libraries and programs that they name may run",
     .needs = "layers",
     .offset = REPORT(allow_plugins)},
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

// Names the files in their folder, and claims them.
static enum msc_status claim_figures(struct msc_file_set *files, struct msc_figures *figures,
                                     const char *folder) {
    for (size_t i = 0; i < figures->n; i++) {
        struct msc_figure *figure = &figures->items[i];
        figure->name = msc_path_join(&figures->arena, folder, figure->name);
        MSC_TRY(MSC_ALLOCATED(figure->name));
        MSC_TRY(msc_output_claim(files, MSC_OUTPUT_FIGURE, "a figure", figure->name));
    }
    return MSC_OK;
}

static enum msc_status write_figures(const struct msc_figures *figures, const char *folder) {
    MSC_TRY(msc_file_make_folders(folder));
    for (size_t i = 0; i < figures->n; i++) {
        const struct msc_figure *figure = &figures->items[i];
        MSC_TRY(msc_file_write(figure->name, figure->svg, strlen(figure->svg)));
    }
    return MSC_OK;
}

static enum msc_status print_written(const char *page, const struct msc_figures *figures) {
    struct msc_str said = {0};
    msc_str_append(&said, "report: ");
    msc_shown_append(&said, page);
    msc_str_char(&said, '\n');
    for (size_t i = 0; i < figures->n; i++) {
        msc_str_append(&said, "figure: ");
        msc_shown_append(&said, figures->items[i].name);
        msc_str_char(&said, '\n');
    }
    enum msc_status status = msc_cli_print_str(&said);
    msc_str_finish(&said);
    return status;
}

static enum msc_status claim_page(struct msc_file_set *files, const struct report_values *v,
                                  const char *path) {
    for (size_t i = 0; i < v->records.n; i++) {
        MSC_TRY(msc_file_set_read(files, "a record", v->records.items[i]));
    }
    return msc_output_claim(files, MSC_OUTPUT_PAGE, "the page", path);
}

static enum msc_status make_document(cJSON **out, const struct msc_cli_call *call,
                                     const struct report_values *v) {
    const struct msc_layers_options layers = {.allow_plugins = v->allow_plugins,
                                              .log = &call->console->log};
    const struct msc_document_options o = {.paths = v->records.items,
                                           .n = v->records.n,
                                           .layers = v->layers ? &layers : NULL,
                                           .log = &call->console->log};
    return msc_document_create(out, &o);
}

static enum msc_status write_report(const struct msc_cli_call *call,
                                    const struct report_values *v) {
    const char *path = v->output ? v->output : name_output(call->arena, v->records.items[0]);
    struct msc_str page = {0};
    struct msc_file_set files = {0};
    struct msc_figures figures = {0};
    cJSON *document = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY_OUT(claim_page(&files, v, path));
    MSC_TRY_OUT(make_document(&document, call, v));
    MSC_TRY_OUT(msc_page_write(&page, document, &(struct msc_page_options){0}));
    if (v->figures) {
        MSC_TRY_OUT(msc_figures_draw(&figures, document));
        MSC_TRY_OUT(claim_figures(&files, &figures, v->figures));
        MSC_TRY_OUT(write_figures(&figures, v->figures));
    }
    MSC_TRY_OUT(msc_file_write(path, msc_str_text(&page), page.length));
    status = print_written(path, &figures);
out:
    cJSON_Delete(document);
    msc_figures_finish(&figures);
    msc_file_set_finish(&files);
    msc_str_finish(&page);
    return status;
}

static enum msc_status print_document(const struct msc_cli_call *call,
                                      const struct report_values *v) {
    cJSON *document = NULL;
    MSC_TRY(make_document(&document, call, v));
    enum msc_status status = msc_cli_print_json(document);
    cJSON_Delete(document);
    return status;
}

static enum msc_status check_report(const struct report_values *v) {
    bool writes = !v->serve && !v->common.json;
    if (v->layers && v->serve) {
        return MSC_FAIL(MSC_E_INVALID, "report: --layers cannot be used with --serve");
    }
    return writes || (!v->output && !v->figures)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "report: %s cannot be used with %s",
                          v->output ? "--output" : "--figures", v->serve ? "--serve" : "--json");
}

static int cmd_report(const struct msc_cli_call *call, void *payload) {
    const struct report_values *v = payload;
    enum msc_status status = check_report(v);
    if (status != MSC_OK) {
        return msc_cli_fail(call, status);
    }
    status = v->serve         ? msc_cli_serve(v->records.items, v->records.n, v->port)
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
                "  mscgym report msc_workspace/digits.jsonl --layers --figures pictures\n"
                "  mscgym report msc_workspace --serve\n",
    .options = options,
    .values_size = sizeof(struct report_values),
    .run = cmd_report,
};
