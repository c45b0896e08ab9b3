#include "cli/cli.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "records/record.h"

#include <string.h>

struct salvage_values {
    struct msc_cli_common common;
    const char *record, *output;
};

#define SALVAGE(member) offsetof(struct salvage_values, member)

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "damaged record; it is only read",
     .offset = SALVAGE(record),
     .is_positional = true,
     .is_required = true},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "record to write, in the same folder",
     .offset = SALVAGE(output)},
    {0},
};

static enum msc_status print_salvaged_json(const struct salvage_values *v,
                                           const struct msc_record_salvaged *found) {
    enum msc_status status = MSC_OK;
    cJSON *json = cJSON_CreateObject();
    MSC_TRY_OUT(msc_json_add_text(json, "record", v->output));
    MSC_TRY_OUT(msc_json_add_number(json, "trials", (double)found->n_trials));
    MSC_TRY_OUT(msc_json_add_number(json, "left_out", (double)found->n_left_out));
    if (found->n_left_out > 0) {
        MSC_TRY_OUT(msc_json_add_number(json, "line", (double)found->line));
        MSC_TRY_OUT(msc_json_add_number(json, "sound", (double)found->n_sound));
    }
    status = msc_cli_print_json(json);
out:
    cJSON_Delete(json);
    return status;
}

static enum msc_status print_salvaged(const struct salvage_values *v,
                                      const struct msc_record_salvaged *found) {
    struct msc_str text = {0};
    msc_str_printf(&text, "%s: %zu trial%s\n", v->output, found->n_trials,
                   found->n_trials == 1 ? "" : "s");
    if (found->n_left_out > 0) {
        msc_str_printf(&text, "left out: %zu lines, from line %zu on", found->n_left_out,
                       found->line);
    } else {
        msc_str_append(&text, "nothing was left out");
    }
    if (found->n_sound > 0) {
        msc_str_printf(&text, "; %zu of them are intact, but follow a damaged one", found->n_sound);
    }
    msc_str_char(&text, '\n');
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

// The output must be in the record's folder, because paths of model and samples are relative to it.
static enum msc_status check_folder(const struct salvage_values *v, struct msc_arena *arena) {
    const char *const paths[2] = {v->record, v->output};
    char *folders[2];
    for (int i = 0; i < 2; i++) {
        const char *folder = msc_path_folder(arena, paths[i]);
        MSC_TRY(MSC_ALLOCATED(folder));
        MSC_TRY(msc_path_absolute(&folders[i], arena, folder));
    }
    return strcmp(folders[0], folders[1]) == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "salvage: --output is %s, expected a file in the folder of the record, "
                          "%s: paths in the record are relative to that folder",
                          v->output, folders[0]);
}

static int cmd_salvage(const struct msc_cli_call *call, void *payload) {
    const struct salvage_values *v = payload;
    struct msc_record_salvaged found;
    enum msc_status status =
        v->output ? check_folder(v, call->arena)
                  : MSC_FAIL(MSC_E_INVALID, "salvage: --output is missing: -o NEW.jsonl");
    if (status == MSC_OK) {
        status = msc_record_salvage(&found, v->record, v->output);
    }
    if (status == MSC_OK) {
        status = v->common.json ? print_salvaged_json(v, &found) : print_salvaged(v, &found);
    }
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

const struct msc_cli_command msc_cmd_salvage = {
    .name = "salvage",
    .summary = "saves the intact part of a damaged record",
    .usage = "RECORD -o FILE",
    .description = "Copies the header and every line before the first damaged one to a new record, "
                   "which mscgym resume continues.",
    .examples = "  mscgym salvage msc_workspace/digits.jsonl -o msc_workspace/saved.jsonl\n",
    .options = options,
    .values_size = sizeof(struct salvage_values),
    .run = cmd_salvage,
};
