// Writes an analysis as text, CSV and JSON.
#include "results/analysis.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/table.h"

#include <stdio.h>
#include <string.h>

static const char *task_of(const struct msc_analysis *a, size_t alone) {
    return msc_record_space(a->record)->tasks[a->alone[alone].task].name;
}

static const char *label_of(const struct msc_analysis *a, size_t alone) {
    const struct msc_analysis_alone *x = &a->alone[alone];
    return msc_record_space(a->record)->tasks[x->task].labels[x->choice];
}

static size_t n_shown(const struct msc_analysis *a, size_t most_pairs) {
    return a->n_pairs < most_pairs ? a->n_pairs : most_pairs;
}

// ---- For people -------------------------------------------------------------------------------

static void add_number_cell(struct msc_table *table, double value, const char *format) {
    char text[40];
    snprintf(text, sizeof text, format, value);
    msc_table_add(table, text);
}

// Writes the reference trial: its id, its label if it is a baseline, and its value.
static void write_reference(struct msc_str *out, const struct msc_analysis *a) {
    const struct msc_space *space = msc_record_space(a->record);
    const struct msc_record_line *line = &a->reference;
    const char *label = line->baseline >= 0 ? space->baselines[line->baseline].label : NULL;
    msc_str_printf(out, "reference: trial %lld", (long long)line->trial.id);
    if (label) {
        msc_str_printf(out, " (%s", msc_baseline_kind(label));
        msc_shown_append(out, label);
        msc_str_char(out, ')');
    }
    msc_str_append(out, ", ");
    msc_shown_append(out, a->metric);
    msc_str_printf(out, " %.5g\n", a->reference_value);
}

static enum msc_status write_alone(struct msc_str *out, const struct msc_analysis *a,
                                   size_t n_columns) {
    struct msc_table table = {.n_columns = 4, .indent = 2, .least_columns = 10};
    msc_str_printf(out, "single choices: %zu of %zu measured\n", a->n_alone, a->n_choices);
    const char *const names[] = {"task", "choice", a->metric, "difference"};
    for (size_t i = 0; i < 4; i++) {
        msc_table_add(&table, names[i]);
    }
    for (size_t i = 0; i < a->n_alone; i++) {
        msc_table_add(&table, task_of(a, i));
        msc_table_add(&table, label_of(a, i));
        add_number_cell(&table, a->alone[i].value, "%.5g");
        add_number_cell(&table, a->alone[i].difference, "%+.5g");
    }
    msc_table_write(out, &table, n_columns);
    msc_table_finish(&table);
    return msc_str_status(out);
}

static enum msc_status write_pairs(struct msc_str *out, const struct msc_analysis *a,
                                   size_t most_pairs, size_t n_columns) {
    struct msc_table table = {.n_columns = 7, .indent = 2, .least_columns = 8};
    size_t n = n_shown(a, most_pairs);
    msc_str_printf(out, "pairs: %zu", a->n_pairs);
    if (n < a->n_pairs) {
        msc_str_printf(out, ", the %zu with the strongest interactions", n);
    }
    msc_str_char(out, '\n');
    static const char *const names[] = {"task",       "choice", "and",        "choice",
                                        "difference", "sum",    "interaction"};
    for (size_t i = 0; i < 7; i++) {
        msc_table_add(&table, names[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const struct msc_analysis_pair *pair = &a->pairs[i];
        for (size_t k = 0; k < 2; k++) {
            msc_table_add(&table, task_of(a, pair->alone[k]));
            msc_table_add(&table, label_of(a, pair->alone[k]));
        }
        add_number_cell(&table, pair->difference, "%+.5g");
        add_number_cell(&table, pair->sum, "%+.5g");
        add_number_cell(&table, pair->interaction, "%+.5g");
    }
    msc_table_write(out, &table, n_columns);
    msc_table_finish(&table);
    return msc_str_status(out);
}

enum msc_status msc_analysis_text(struct msc_str *out, const struct msc_analysis *analysis,
                                  size_t most_pairs, size_t n_columns) {
    msc_str_append(out, "record: ");
    msc_shown_append(out, msc_record_path(analysis->record));
    msc_str_char(out, '\n');
    if (!analysis->has_reference) {
        msc_str_append(out, "no trial has a result yet\n");
        return msc_str_status(out);
    }
    write_reference(out, analysis);
    MSC_TRY(write_alone(out, analysis, n_columns));
    return n_shown(analysis, most_pairs) > 0 ? write_pairs(out, analysis, most_pairs, n_columns)
                                             : MSC_OK;
}

// ---- For programs -----------------------------------------------------------------------------

static void write_choice(struct msc_str *out, const struct msc_analysis *a, size_t alone) {
    msc_str_csv(out, task_of(a, alone));
    msc_str_char(out, ',');
    msc_str_csv(out, label_of(a, alone));
    msc_str_char(out, ',');
}

static void write_number(struct msc_str *out, double value, char after) {
    msc_str_double(out, value);
    msc_str_char(out, after);
}

void msc_analysis_csv(struct msc_str *out, const struct msc_analysis *analysis, size_t most_pairs) {
    msc_str_append(out, "task,choice,task_2,choice_2,");
    msc_str_csv(out, analysis->metric);
    msc_str_append(out, ",difference,sum,interaction\n");
    for (size_t i = 0; i < analysis->n_alone; i++) {
        write_choice(out, analysis, i);
        msc_str_append(out, ",,");
        write_number(out, analysis->alone[i].value, ',');
        write_number(out, analysis->alone[i].difference, ',');
        msc_str_append(out, ",\n");
    }
    for (size_t i = 0; i < n_shown(analysis, most_pairs); i++) {
        const struct msc_analysis_pair *pair = &analysis->pairs[i];
        write_choice(out, analysis, pair->alone[0]);
        write_choice(out, analysis, pair->alone[1]);
        write_number(out, pair->value, ',');
        write_number(out, pair->difference, ',');
        write_number(out, pair->sum, ',');
        write_number(out, pair->interaction, '\n');
    }
}

static enum msc_status add_alone_json(cJSON *list, const struct msc_analysis *a) {
    for (size_t i = 0; i < a->n_alone; i++) {
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_number(object, "id", (double)a->alone[i].id));
        MSC_TRY(msc_json_add_text(object, "task", task_of(a, i)));
        MSC_TRY(msc_json_add_text(object, "choice", label_of(a, i)));
        MSC_TRY(msc_json_add_number(object, "value", a->alone[i].value));
        MSC_TRY(msc_json_add_number(object, "difference", a->alone[i].difference));
    }
    return MSC_OK;
}

static enum msc_status add_pairs_json(cJSON *list, const struct msc_analysis *a, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct msc_analysis_pair *pair = &a->pairs[i];
        cJSON *object = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, object));
        MSC_TRY(msc_json_add_number(object, "id", (double)pair->id));
        cJSON *choices = cJSON_CreateObject();
        MSC_TRY(msc_json_add(object, "choices", choices));
        for (size_t k = 0; k < 2; k++) {
            MSC_TRY(msc_json_add_text(choices, task_of(a, pair->alone[k]),
                                      label_of(a, pair->alone[k])));
        }
        MSC_TRY(msc_json_add_number(object, "value", pair->value));
        MSC_TRY(msc_json_add_number(object, "difference", pair->difference));
        MSC_TRY(msc_json_add_number(object, "sum", pair->sum));
        MSC_TRY(msc_json_add_number(object, "interaction", pair->interaction));
    }
    return MSC_OK;
}

static enum msc_status fill_analysis(cJSON *object, const struct msc_analysis *a,
                                     size_t most_pairs) {
    const struct msc_space *space = msc_record_space(a->record);
    cJSON *reference = a->has_reference ? cJSON_CreateObject() : cJSON_CreateNull();
    MSC_TRY(msc_json_add_text(object, "record", msc_record_path(a->record)));
    MSC_TRY(msc_json_add_text(object, "metric", a->metric));
    MSC_TRY(msc_json_add(object, "reference", reference));
    if (a->has_reference) {
        cJSON *choices = cJSON_CreateObject();
        MSC_TRY(msc_json_add_number(reference, "id", (double)a->reference.trial.id));
        MSC_TRY(msc_json_add_number(reference, "value", a->reference_value));
        MSC_TRY(msc_json_add(reference, "choices", choices));
        for (size_t t = 0; t < space->n_tasks; t++) {
            uint32_t choice = a->reference.trial.proposal.choices[t];
            MSC_TRY(
                msc_json_add_text(choices, space->tasks[t].name, space->tasks[t].labels[choice]));
        }
    }
    cJSON *alone = cJSON_CreateArray();
    MSC_TRY(msc_json_add_number(object, "n_choices", (double)a->n_choices));
    MSC_TRY(msc_json_add_number(object, "n_pairs", (double)a->n_pairs));
    MSC_TRY(msc_json_add(object, "alone", alone));
    MSC_TRY(add_alone_json(alone, a));
    cJSON *pairs = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "pairs", pairs));
    return add_pairs_json(pairs, a, n_shown(a, most_pairs));
}

enum msc_status msc_analysis_describe(struct cJSON **out, const struct msc_analysis *analysis,
                                      size_t most_pairs) {
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = object ? fill_analysis(object, analysis, most_pairs)
                                    : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(object);
        return status;
    }
    *out = object;
    return MSC_OK;
}
