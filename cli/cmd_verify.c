#include "cli/searching.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "checks/verify.h"
#include "env/env.h"
#include "records/record_header.h"

#include <math.h>
#include <string.h>

struct verify_values {
    struct msc_cli_common common;
    const char *record, *trials;
    int64_t sample, seed;
    bool allow_plugins;
};

#define VERIFY(member) offsetof(struct verify_values, member)

static const struct msc_cli_option options[] = {
    {.name = "RECORD",
     .type = MSC_CLI_TEXT,
     .values = MSC_CLI_FILES,
     .help = "record of a search",
     .offset = VERIFY(record),
     .is_positional = true,
     .is_required = true},
    {.name = "trials",
     .argument = "LIST",
     .type = MSC_CLI_TEXT,
     .help = "evaluate only these trials, such as 3,7-9",
     .offset = VERIFY(trials)},
    {.name = "sample",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "evaluate N trials drawn at random",
     .offset = VERIFY(sample)},
    {.name = "seed",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "with --sample: seed of the draw",
     .offset = VERIFY(seed)},
    {.name = "allow-plugins",
     .type = MSC_CLI_FLAG,
     .help = "trust the record: libraries and programs that it names may run",
     .offset = VERIFY(allow_plugins)},
    {0},
};

// The verdicts' keys in the JSON output.
static const char *const keys[MSC_VERIFY_VERDICT_COUNT] = {
    [MSC_VERIFY_EQUAL] = "equal",
    [MSC_VERIFY_WITHIN_NOISE] = "within_noise",
    [MSC_VERIFY_DIFFERENT] = "different",
    [MSC_VERIFY_SKIPPED] = "skipped",
};

static enum msc_status write_json(const struct msc_verify_result *result, const cJSON *drops) {
    cJSON *json = cJSON_CreateObject();
    cJSON *lines = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    for (int i = 0; status == MSC_OK && i < MSC_VERIFY_VERDICT_COUNT; i++) {
        status = msc_json_add_number(json, keys[i], (double)result->n_by_verdict[i]);
    }
    for (size_t i = 0; status == MSC_OK && i < result->n_lines; i++) {
        cJSON *line = cJSON_CreateObject();
        status = msc_json_push(lines, line);
        if (status == MSC_OK) {
            status = msc_json_add_number(line, "id", (double)result->lines[i].id);
        }
        if (status == MSC_OK) {
            status = msc_json_add_text(line, "verdict", keys[result->lines[i].verdict]);
        }
    }
    if (status == MSC_OK) {
        status = msc_json_add(json, "lines", lines);
        lines = NULL;
    }
    if (status == MSC_OK && result->has_distilled) {
        status = msc_json_add_text(json, "distilled", keys[result->distilled.verdict]);
    }
    if (status == MSC_OK && drops->child) {
        status = msc_json_add(json, "drops", cJSON_Duplicate(drops, true));
    }
    if (status == MSC_OK) {
        status = msc_cli_print_json(json);
    }
    cJSON_Delete(lines);
    cJSON_Delete(json);
    return status;
}

static void write_drops(struct msc_str *out, const cJSON *drops) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, drops) {
        double recorded = msc_json_number_of(row, "float"), now = msc_json_number_of(row, "now");
        msc_str_printf(out, "%s%s: at most %g is allowed from the float model's %.5g, ",
                       msc_json_text_of(row, "metric"),
                       cJSON_IsTrue(msc_json_get(row, "relative")) ? MSC_DROP_RATIO_SUFFIX
                                                                   : MSC_DROP_SUFFIX,
                       msc_json_number_of(row, "drop"), recorded);
        if (now == recorded) {
            msc_str_append(out, "which is measured again\n");
        } else {
            msc_str_printf(out, "but it is %.17g now\n", now);
        }
    }
}

static enum msc_status print_verified(const struct msc_verify_result *result, const cJSON *drops) {
    struct msc_str text = {0};
    for (size_t i = 0; i < result->n_lines; i++) {
        if (result->lines[i].verdict == MSC_VERIFY_DIFFERENT) {
            msc_str_printf(&text, "trial %lld: ", (long long)result->lines[i].id);
            msc_verify_describe(&text, &result->lines[i]);
            msc_str_char(&text, '\n');
        }
    }
    if (result->has_distilled && result->distilled.verdict == MSC_VERIFY_DIFFERENT) {
        msc_str_append(&text, "the distilled plan: ");
        msc_verify_describe(&text, &result->distilled);
        msc_str_char(&text, '\n');
    }
    const char *before = "";
    for (int i = 0; i < MSC_VERIFY_VERDICT_COUNT; i++) {
        if (result->n_by_verdict[i] > 0) {
            msc_str_printf(&text, "%s%zu %s", before, result->n_by_verdict[i],
                           msc_verify_verdict_name((enum msc_verify_verdict)i));
            before = ", ";
        }
    }
    if (!isnan(result->noise_ratio)) {
        msc_str_printf(&text, " (other numerics: noise %.3g)", result->noise_ratio);
    }
    msc_str_append(&text, before[0] ? "\n" : "the record has no trials\n");
    write_drops(&text, drops);
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

// Adds a row to `list` for each bound by drop: the bound, the float model's value in the record,
// and `now`, the value measured again. A value that differs under the record's own numerics sets
// *is_different.
static enum msc_status check_drops(cJSON *list, bool *is_different, const struct msc_record *record,
                                   struct msc_processor *p) {
    const struct msc_goal *goal = msc_record_goal(record);
    const char *numerics = msc_json_text_of(msc_record_header(record), "numerics");
    bool is_same = numerics && strcmp(numerics, msc_processor_numerics(p)) == 0;
    double metrics[MSC_MAX_METRICS];
    struct msc_drops drops;
    MSC_TRY(msc_record_header_drops(&drops, msc_record_header(record), msc_record_path(record)));
    MSC_TRY(msc_drops_any(&drops, goal) ? msc_env_reference(msc_processor_env(p), metrics)
                                        : MSC_OK);
    for (size_t i = 0; i < goal->n_bounds; i++) {
        const struct msc_drop *drop = &drops.of_bound[i];
        const struct msc_metric *metric =
            &msc_record_space(record)->metrics[goal->bounds[i].metric];
        if (!drop->is_stated) {
            continue;
        }
        double now = metrics[goal->bounds[i].metric];
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, row));
        MSC_TRY(msc_json_add_text(row, "metric", metric->name));
        MSC_TRY(msc_json_add_number(row, "drop", drop->most));
        MSC_TRY(msc_json_add_bool(row, "relative", drop->is_relative));
        MSC_TRY(msc_json_add_number(row, "float", drop->reference));
        MSC_TRY(msc_json_add_number(row, "now", now));
        *is_different |= now != drop->reference && is_same && !metric->is_measured;
    }
    return MSC_OK;
}

// Prints the result before the environment is released, because the result borrows from it.
static enum msc_status cmd_verify_run(bool *is_different, const struct msc_cli_call *call,
                                      const struct verify_values *v) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    struct msc_verify_result result = {0};
    struct msc_processor *p = NULL;
    cJSON *drops = cJSON_CreateArray();
    struct msc_record *record = NULL;
    int64_t *ids = NULL;
    size_t n_ids = 0;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_cli_fill_options(&o, call, &v->common));
    if (v->trials) {
        MSC_TRY_OUT(msc_verify_parse_ids(&ids, &n_ids, v->trials));
    }
    MSC_TRY_OUT(msc_record_open(&record, v->record, MSC_RECORD_READ, o.log));
    o.allow_plugins = v->allow_plugins;
    MSC_TRY_OUT(msc_processor_open_record(&p, v->record, &o));
    MSC_TRY_OUT(msc_processor_prepare(p));
    const struct msc_verify_options what = {
        .record = record,
        .env = msc_processor_env(p),
        .numerics = msc_processor_numerics(p),
        .ids = ids,
        .n_ids = n_ids,
        .n_sample = v->sample > 0 ? (size_t)v->sample : 0,
        .seed = v->seed > 0 ? (uint64_t)v->seed : 0,
        .noise_ratio = -1,
        .log = o.log,
    };
    MSC_TRY_OUT(msc_verify_run(&result, &what));
    *is_different = result.n_by_verdict[MSC_VERIFY_DIFFERENT] > 0;
    MSC_TRY_OUT(MSC_ALLOCATED(drops));
    MSC_TRY_OUT(check_drops(drops, is_different, record, p));
    status = v->common.json ? write_json(&result, drops) : print_verified(&result, drops);
out:
    cJSON_Delete(drops);
    msc_verify_result_finish(&result);
    msc_processor_close(p);
    msc_record_close(record);
    msc_free(ids);
    return status;
}

static int cmd_verify(const struct msc_cli_call *call, void *payload) {
    bool is_different = false;
    enum msc_status status = cmd_verify_run(&is_different, call, payload);
    if (status != MSC_OK) {
        return msc_cli_fail(call, status);
    }
    return is_different ? MSC_CLI_FAILED : MSC_CLI_OK;
}

const struct msc_cli_command msc_cmd_verify = {
    .name = "verify",
    .summary = "evaluates trials of a record again and compares the results",
    .usage = "RECORD [options]",
    .description = "Under the numerics of the original trial every bit must agree; under others "
                   "the difference must be within the noise. Exit code 1 if a trial differs.",
    .examples = "  mscgym verify msc_workspace/digits.jsonl --sample 20\n"
                "  mscgym verify msc_workspace/digits.jsonl --trials 3,7-9\n",
    .options = options,
    .uses_models = true,
    .values_size = sizeof(struct verify_values),
    .run = cmd_verify,
};
