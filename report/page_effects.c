// Which tasks and choices matter: their importance, the effects of single choices, and pairs.
#include "report/page_internal.h"
#include "results/units.h"

#include <stdio.h>

// If the model explains less, its shares are called a hint.
#define LEAST_EXPLAINED 0.7

// Writes the name of a metric within a sentence.
static void write_phrase(struct msc_str *out, const char *metric) {
    struct msc_str phrase = {0};
    msc_unit_phrase(&phrase, metric);
    msc_html_name(out, msc_str_text(&phrase));
    out->failed |= phrase.failed;
    msc_str_finish(&phrase);
}

// ---- Importance ---------------------------------------------------------------------------------

static void write_shares(struct msc_str *out, const cJSON *tasks) {
    static const char *const columns[] = {"task", "share", NULL};
    const cJSON *row = NULL;
    msc_page__begin_details(out, "Every task");
    msc_page__table(out, "Importance of tasks", columns, "");
    cJSON_ArrayForEach(row, tasks) {
        double share = msc_page__number(row, "share");
        char text[32];
        snprintf(text, sizeof text, "%.3g %%", 100.0 * share);
        msc_page__row(out, NULL);
        msc_page__head_cell(out, msc_page__text(row, "task"));
        msc_page__bar_cell(out, share, text);
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    msc_str_append(out, "</details>\n");
}

static void write_importance(struct msc_str *out, const cJSON *effects, int index) {
    const cJSON *importance = msc_json_get(effects, "importance");
    const cJSON *tasks = msc_json_get(importance, "tasks");
    double explained = msc_page__number(importance, "explained");
    if (cJSON_GetArraySize(tasks) == 0) {
        return;
    }
    msc_page__begin(out, index, "importance", "Importance of tasks");
    msc_str_append(out,
                   "<p class=\"note\">How much each task decides: its share of the variance of ");
    write_phrase(out, msc_page__text(effects, "metric"));
    msc_str_printf(out,
                   " if all choices are equally likely, by an additive model of %.0f trials. The "
                   "model explains %.3g %% of the variance among the trials%s</p>\n",
                   msc_page__number(importance, "trials"), 100.0 * explained,
                   explained < LEAST_EXPLAINED
                       ? ", so tasks act together, and the shares are only a hint."
                       : ".");
    msc_page__chart(out, "importance", "The share of the variance that each task decides");
    write_shares(out, tasks);
    msc_page__end(out);
}

// ---- Effects ------------------------------------------------------------------------------------

static double greatest_of(const cJSON *list, const char *key) {
    const cJSON *row = NULL;
    double greatest = 0.0;
    cJSON_ArrayForEach(row, list) {
        greatest = fmax(greatest, fabs(msc_page__number(row, key)));
    }
    return greatest;
}

static void write_signed_bar(struct msc_str *out, double value, double greatest) {
    char text[32];
    snprintf(text, sizeof text, "%+.4g", value);
    msc_page__bar_cell(out, fabs(value) / greatest, text);
}

static void write_alone(struct msc_str *out, const cJSON *alone, const char *metric) {
    // Effects that a model estimates have only differences.
    bool has_values = msc_json_get(alone->child, "value") != NULL;
    const char *const columns[] = {"task", "choice", "difference", has_values ? metric : NULL,
                                   NULL};
    double greatest = greatest_of(alone, "difference");
    const cJSON *row = NULL;
    msc_page__begin_details(out, "Single choices, largest change first");
    msc_page__table(out, "Single choices", columns, "   n");
    cJSON_ArrayForEach(row, alone) {
        msc_page__row(out, NULL);
        msc_page__head_cell(out, msc_page__text(row, "task"));
        msc_page__cell(out, msc_page__text(row, "choice"));
        write_signed_bar(out, msc_page__number(row, "difference"), greatest);
        if (has_values) {
            msc_page__number_cell(out, msc_page__number(row, "value"));
        }
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    msc_str_append(out, "</details>\n");
}

static void write_pairs(struct msc_str *out, const cJSON *pairs) {
    static const char *const columns[] = {"pair", "both", "sum of both singly", "interaction",
                                          NULL};
    double greatest = greatest_of(pairs, "interaction");
    const cJSON *row = NULL;
    msc_str_append(out, "<h3>Strongest interactions</h3>\n");
    msc_page__table(out, "Pairs", columns, " nn ");
    cJSON_ArrayForEach(row, pairs) {
        const cJSON *choice = NULL;
        const char *before = "";
        msc_page__row(out, NULL);
        msc_str_append(out, "<th scope=\"row\">");
        cJSON_ArrayForEach(choice, msc_json_get(row, "choices")) {
            msc_str_append(out, before);
            msc_html_name(out, choice->string);
            msc_str_append(out, " <span class=\"quiet\">");
            msc_html_name(out, cJSON_IsString(choice) ? choice->valuestring : "");
            msc_str_append(out, "</span>");
            before = "<br>";
        }
        msc_str_append(out, "</th>");
        msc_page__number_cell(out, msc_page__number(row, "difference"));
        msc_page__number_cell(out, msc_page__number(row, "sum"));
        write_signed_bar(out, msc_page__number(row, "interaction"), greatest);
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
}

void msc_page__effects(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *effects = msc_json_get(record, "effects");
    const cJSON *reference = msc_json_get(effects, "reference");
    const cJSON *alone = msc_json_get(effects, "alone"), *pairs = msc_json_get(effects, "pairs");
    write_importance(out, effects, index);
    msc_page__begin(out, index, "effects", "Sensitivity");
    if (cJSON_GetArraySize(alone) == 0) {
        msc_str_append(out,
                       "<p>No two trials differ in only one task. <code>mscgym sensitivity</code> "
                       "measures each choice.</p>\n");
        msc_page__end(out);
        return;
    }
    msc_str_append(out, "<p class=\"note\">Effect of a single choice on ");
    write_phrase(out, msc_page__text(effects, "metric"));
    const cJSON *fitted = msc_json_get(effects, "fitted");
    if (fitted) {
        msc_str_printf(
            out,
            ", compared with the plan's own choice. Few trials differ in only one task, so an "
            "additive model was fitted to %.0f trials; it explains %.3g %% of their variance.",
            msc_page__number(fitted, "trials"), 100.0 * msc_page__number(fitted, "explained"));
        bool is_hint = msc_page__number(fitted, "trials") < msc_page__number(effects, "n_choices");
        msc_str_append(out, is_hint ? " There are fewer trials than choices, so this is only a "
                                      "hint.</p>\n"
                                    : "</p>\n");
    } else {
        msc_str_printf(
            out, ", with all others as in trial %.0f; %d of %.0f choices were measured.</p>\n",
            msc_page__number(reference, "id"), cJSON_GetArraySize(alone),
            msc_page__number(effects, "n_choices"));
    }
    msc_page__chart(out, "effects", "The tasks that the objective depends on most");
    write_alone(out, alone, msc_page__text(effects, "metric"));
    if (cJSON_GetArraySize(pairs) > 0) {
        write_pairs(out, pairs);
    }
    msc_page__end(out);
}
