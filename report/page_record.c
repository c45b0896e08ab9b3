// One record on a page: a summary box with the plan to deploy and the reasons, then the figures.
#include "report/page_internal.h"

#include "base/shown.h"
#include "env/api/space.h"

#include <stdio.h>
#include <string.h>

// ---- The box ----------------------------------------------------------------------------------

// Writes a metric of the delivered plan in large print, with the values of the uncompressed model
// and the first baseline.
static void write_tile(struct msc_str *out, const cJSON *record, const char *metric) {
    const cJSON *numbers = msc_json_get(record, "numbers");
    const cJSON *baseline = cJSON_GetArrayItem(msc_json_get(numbers, "baselines"), 0);
    const cJSON *reference = msc_json_get(numbers, "reference");
    const cJSON *plan = msc_json_get(record, "delivered");
    double value = msc_page__number(msc_json_get(plan, "metrics"), metric);
    double beside = msc_page__number(msc_json_get(baseline, "metrics"), metric);
    double whole = msc_page__number(msc_json_get(reference, "metrics"), metric);
    if (isnan(value)) {
        return;
    }
    msc_str_append(out, "<div class=\"tile\"><dt>");
    msc_page__metric(out, metric);
    msc_str_append(out, "</dt><dd><b>");
    msc_page__quantity(out, metric, value);
    msc_str_append(out, "</b>");
    if (!isnan(beside) && msc_json_get(baseline, "label")) {
        const char *label = msc_page__text(baseline, "label");
        msc_str_printf(out, "<span>%s", msc_baseline_kind(label));
        msc_html_name(out, label);
        msc_str_append(out, ": ");
        msc_page__quantity(out, metric, beside);
        msc_str_append(out, "</span>");
    }
    if (!isnan(whole)) {
        msc_str_append(out, "<span>uncompressed: ");
        msc_page__quantity(out, metric, whole);
        msc_str_append(out, "</span>");
    }
    msc_str_append(out, "</dd></div>\n");
}

// Writes a tile for the accuracy, each bounded metric and each objective, without repeats.
static void write_tiles(struct msc_str *out, const cJSON *record) {
    enum { MOST = 6 };
    static const char *const lists[] = {"bounds", "objectives"};
    const char *shown[MOST] = {"accuracy"};
    size_t n = 1;
    for (size_t l = 0; l < 2; l++) {
        const cJSON *item = NULL;
        cJSON_ArrayForEach(item, msc_json_get(msc_json_get(record, "numbers"), lists[l])) {
            if (n < MOST) {
                shown[n++] = msc_page__text(item, "metric");
            }
        }
    }
    msc_str_append(out, "<dl class=\"tiles\">\n");
    for (size_t i = 0; i < n; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i; k++) {
            is_new = is_new && strcmp(shown[k], shown[i]) != 0;
        }
        if (is_new) {
            write_tile(out, record, shown[i]);
        }
    }
    msc_str_append(out, "</dl>\n");
}

static void write_box(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *verdict = msc_json_get(record, "verdict");
    msc_str_printf(
        out,
        "<section class=\"part box box-%s\" id=\"r%d-box\" aria-labelledby=\"r%d-box-h\">\n"
        "<h2 id=\"r%d-box-h\">",
        msc_page__text(verdict, "kind"), index, index, index);
    msc_html_text(out, msc_page__text(verdict, "headline"));
    msc_str_append(out, "</h2>\n");
    if (cJSON_IsObject(msc_json_get(record, "delivered"))) {
        write_tiles(out, record);
    }
    msc_page__reasons(out, verdict);
    msc_page__end(out);
}

// ---- Trials -----------------------------------------------------------------------------------

static const char *objective_of(const cJSON *record) {
    const cJSON *objectives = msc_json_get(msc_json_get(record, "numbers"), "objectives");
    return msc_page__text(cJSON_GetArrayItem(objectives, 0), "metric");
}

static void write_progress(struct msc_str *out, const cJSON *record, int index) {
    enum { ROWS = 40 };
    const char *const columns[] = {"trial", "seconds", objective_of(record), NULL};
    const cJSON *trials = msc_json_get(record, "trials"), *best = msc_json_get(trials, "best");
    const cJSON *value = msc_json_get(best, "value");
    int n = cJSON_GetArraySize(value), first = n > ROWS ? n - ROWS : 0;
    msc_page__begin(out, index, "progress", "Best so far");
    if (n == 0) {
        msc_str_append(out, "<p>No trial meets the bounds yet.</p>\n");
        msc_page__end(out);
        return;
    }
    msc_str_append(out, "<div class=\"charts\">\n");
    msc_page__chart(out, "best-trials", "The best value so far over the trials");
    msc_page__chart(out, "best-time", "The best value so far over the time of search");
    msc_str_append(out, "</div>\n");
    msc_page__begin_details(out, "Improvements");
    msc_page__table(out, "Improvements", columns, "nnn");
    for (int i = first; i < n; i++) {
        msc_page__row(out, NULL);
        msc_page__number_cell(out, cJSON_GetArrayItem(msc_json_get(best, "trial"), i)->valuedouble);
        msc_page__number_cell(out,
                              cJSON_GetArrayItem(msc_json_get(best, "seconds"), i)->valuedouble);
        msc_page__number_cell(out, cJSON_GetArrayItem(value, i)->valuedouble);
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    if (first > 0) {
        msc_str_printf(out, "<p class=\"note\">The last %d of %d.</p>\n", ROWS, n);
    }
    msc_str_append(out, "</details>\n");
    msc_page__end(out);
}

#define FRONT_COLUMNS 8

static size_t add_column(const char *columns[], size_t n, const char *name) {
    for (size_t i = 1; i < n; i++) {
        if (strcmp(columns[i], name) == 0) {
            return n;
        }
    }
    if (n < FRONT_COLUMNS && name[0] != '\0') {
        columns[n++] = name;
    }
    return n;
}

// Writes the points of the front: the metrics that differ between points, and a summary of each
// plan.
static void write_front(struct msc_str *out, const cJSON *record) {
    const cJSON *trials = msc_json_get(record, "trials");
    const cJSON *front = msc_json_get(trials, "front"), *row = NULL, *item = NULL;
    const cJSON *numbers = msc_json_get(record, "numbers");
    const char *columns[FRONT_COLUMNS + 2] = {"trial"};
    char kinds[] = " nnnnnnnn"; // the trial, then FRONT_COLUMNS numbers
    size_t n = 1;
    cJSON_ArrayForEach(item, msc_json_get(numbers, "objectives")) {
        n = add_column(columns, n, msc_page__text(item, "metric"));
    }
    n = add_column(columns, n, msc_page__text(trials, "cost"));
    cJSON_ArrayForEach(item, msc_json_get(numbers, "bounds")) {
        n = add_column(columns, n, msc_page__text(item, "metric"));
    }
    columns[n] = "strategy";
    kinds[n] = '\0';
    msc_page__begin_details(out, "The front, and the strategy of each of its points");
    msc_page__table(out, "Pareto front", columns, kinds);
    cJSON_ArrayForEach(row, front) {
        char id[32];
        snprintf(id, sizeof id, "%.0f", msc_page__number(row, "id"));
        msc_page__row(out, NULL);
        msc_page__head_cell(out, id);
        for (size_t k = 1; k < n; k++) {
            msc_page__quantity_cell(out, columns[k],
                                    msc_page__number(msc_json_get(row, "metrics"), columns[k]));
        }
        msc_page__cell(out, msc_page__text(row, "summary"));
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    msc_str_append(out, "</details>\n");
}

static void write_tradeoff(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *trials = msc_json_get(record, "trials");
    const cJSON *points = msc_json_get(trials, "points");
    if (cJSON_GetArraySize(msc_json_get(points, "id")) == 0) {
        return;
    }
    msc_page__begin(out, index, "tradeoff", "Loss against cost");
    msc_page__chart(out, "tradeoff", "The objective of every trial over its cost, with the front");
    if (cJSON_IsTrue(msc_json_get(trials, "is_thinned"))) {
        msc_str_printf(
            out,
            "<p class=\"note\">There are %.0f trials. Points too close to be distinguished are "
            "drawn once; the best, the extremes and the front are all drawn.</p>\n",
            msc_page__number(trials, "n"));
    }
    if (cJSON_GetArraySize(msc_json_get(trials, "front")) > 0) {
        write_front(out, record);
    }
    msc_page__end(out);
}

static void write_choices(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *trials = msc_json_get(record, "trials");
    if (cJSON_GetArraySize(msc_json_get(trials, "tasks")) == 0) {
        return;
    }
    msc_page__begin(out, index, "choices", "Choices of the best trials");
    msc_str_append(out,
                   "<p class=\"note\">Each line is a trial within the bounds; the best tenth is "
                   "highlighted. The first axes are the tasks that the objective depends on "
                   "most.</p>\n");
    msc_page__chart(out, "choices",
                    "The choices of trials for the most important tasks, with cost and objective");
    msc_str_append(out, "<noscript><p class=\"note\">The picture needs scripts.</p></noscript>\n");
    msc_page__end(out);
}

static void write_speed(struct msc_str *out, const cJSON *record, int index) {
    const char *const columns[] = {"seconds", "trials a second", "reuse", NULL};
    const cJSON *speed = msc_json_get(msc_json_get(record, "trials"), "speed");
    int n = cJSON_GetArraySize(msc_json_get(speed, "seconds"));
    if (n == 0) {
        return;
    }
    msc_page__begin(out, index, "speed", "Speed and reuse");
    msc_str_append(out, "<p class=\"note\">Reuse is the share of the work taken from other "
                        "trials.</p>\n<div class=\"charts\">\n");
    msc_page__chart(out, "speed", "Trials a second over the time of search");
    msc_page__chart(out, "reuse", "The share of the work that was reused over the time of search");
    msc_str_append(out, "</div>\n");
    msc_page__begin_details(out, "As numbers");
    msc_page__table(out, "Speed and reuse over time", columns, "nnn");
    for (int i = 0; i < n; i++) {
        msc_page__row(out, NULL);
        for (int k = 0; k < 3; k++) {
            static const char *const keys[] = {"seconds", "trials_per_s", "reuse"};
            const cJSON *item = cJSON_GetArrayItem(msc_json_get(speed, keys[k]), i);
            msc_page__number_cell(out, cJSON_IsNumber(item) ? item->valuedouble : NAN);
        }
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    msc_str_append(out, "</details>\n");
    msc_page__end(out);
}

// ---- Layers, and what the agent learnt
// -----------------------------------------------------------------------

static void write_layers(struct msc_str *out, const cJSON *record, int index) {
    const char *const columns[] = {"task", "of", "bits", "density", "method", "elements", NULL};
    const cJSON *plan = msc_json_get(record, "plan"), *row = NULL;
    if (!plan) {
        return;
    }
    msc_page__begin(out, index, "layers", "The plan over the network");
    msc_page__chart(out, "layers", "Bits and density of each task of the plan");
    msc_page__begin_details(out, "Every task");
    msc_page__table(out, "The plan, task by task", columns, "     n");
    cJSON_ArrayForEach(row, plan) {
        double bits = msc_page__number(row, "bits"), density = msc_page__number(row, "density");
        char text[32];
        msc_page__row(out, NULL);
        msc_page__head_cell(out, msc_page__text(row, "task"));
        msc_page__cell(out, msc_page__text(row, "kind"));
        snprintf(text, sizeof text, "%.0f", bits);
        msc_page__bar_cell(out, bits / 16.0, isnan(bits) ? "–" : text);
        snprintf(text, sizeof text, "%.3g", density);
        msc_page__bar_cell(out, density, isnan(density) ? "–" : text);
        bool is_plain = isnan(bits) && isnan(density);
        msc_page__cell(out, msc_page__text(row, is_plain ? "choice" : "method"));
        msc_page__number_cell(out, msc_page__number(row, "elements"));
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    msc_str_append(out, "</details>\n");
    msc_page__end(out);
}

static bool is_metric(const cJSON *metrics, const char *word) {
    const cJSON *metric = NULL;
    cJSON_ArrayForEach(metric, metrics) {
        if (cJSON_IsString(metric) && strcmp(metric->valuestring, word) == 0) {
            return true;
        }
    }
    return false;
}

// Writes a remark of the agent, with the names of metrics for people.
static void write_remark(struct msc_str *out, const char *text, const cJSON *metrics) {
    struct msc_str word = {0};
    while (*text) {
        size_t length = strcspn(text, " ,:");
        length += length == 0;
        msc_str_clear(&word);
        msc_str_append_n(&word, text, length);
        (is_metric(metrics, msc_str_text(&word)) ? msc_page__metric
                                                 : msc_html_name)(out, msc_str_text(&word));
        text += length;
    }
    out->failed |= word.failed;
    msc_str_finish(&word);
}

static void write_learnt(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *numbers = msc_json_get(record, "numbers"), *remark = NULL;
    const cJSON *learnt = msc_json_get(numbers, "learnt");
    if (cJSON_GetArraySize(learnt) == 0) {
        return;
    }
    msc_page__begin(out, index, "learnt", "What the agent learnt");
    msc_str_append(out, "<p class=\"note\">By its model of all trials, ");
    msc_html_name(out, msc_page__text(msc_json_get(numbers, "agent"), "type"));
    msc_str_append(out, " found:</p>\n<ul class=\"learnt\">\n");
    cJSON_ArrayForEach(remark, learnt) {
        msc_str_append(out, "<li>");
        write_remark(out, cJSON_IsString(remark) ? remark->valuestring : "",
                     msc_json_get(numbers, "metrics"));
        msc_str_append(out, "</li>\n");
    }
    msc_str_append(out, "</ul>\n");
    msc_page__end(out);
}

// ---- Network and configuration ----------------------------------------------------------------

static void write_graph(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *graph = msc_json_get(record, "graph");
    msc_page__begin(out, index, "graph", "The network");
    if (msc_json_get(graph, "missing")) {
        msc_str_append(out, "<p>No picture: ");
        msc_html_text(out, msc_page__text(graph, "missing"));
        msc_str_append(out, ".</p>\n");
    } else {
        msc_str_append(out,
                       "<figure class=\"network\" data-chart=\"graph\"></figure>\n"
                       "<noscript><p class=\"note\">The picture needs scripts; the plan above has "
                       "every task.</p></noscript>\n");
    }
    msc_page__end(out);
}

static enum msc_status write_config(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *config = msc_json_get(record, "config");
    struct msc_str json = {0}, safe = {0};
    msc_page__begin(out, index, "config", "Configuration");
    msc_str_append(out, "<p class=\"note\">");
    msc_html_text(out, msc_page__text(record, "path"));
    msc_str_append(out, "</p>\n");
    if (config) {
        msc_json_write_pretty(&json, config);
        msc_shown_append_json(&safe, msc_str_text(&json));
        msc_page__begin_details(out, "As resolved");
        msc_str_append(out, "<pre tabindex=\"0\">");
        for (const char *line = msc_str_text(&safe); *line;) { // keeps line breaks
            size_t length = strcspn(line, "\n");
            struct msc_str one = {0};
            msc_str_append_n(&one, line, length);
            msc_html_text(out, msc_str_text(&one));
            msc_str_char(out, '\n');
            out->failed |= one.failed;
            msc_str_finish(&one);
            line += length + (line[length] == '\n');
        }
        msc_str_append(out, "</pre></details>\n");
    }
    msc_page__end(out);
    enum msc_status status = json.failed || safe.failed ? msc_str_status(&json) : MSC_OK;
    msc_str_finish(&safe);
    msc_str_finish(&json);
    return status;
}

// ---- One record --------------------------------------------------------------------------------

static void write_head(struct msc_str *out, const cJSON *record, int index) {
    const cJSON *numbers = msc_json_get(record, "numbers");
    const cJSON *counts = msc_json_get(numbers, "counts");
    msc_str_printf(out, "<header><h1 id=\"r%d-h\">", index);
    msc_html_name(out, msc_page__text(record, "name"));
    msc_str_append(out, "</h1>\n<p class=\"meta\">");
    const char *model = msc_page__text(msc_json_get(record, "config"), "model");
    if (model[0]) {
        msc_str_append(out, "model ");
        msc_html_name(out, model);
        msc_str_append(out, " · ");
    }
    msc_str_append(out, "agent ");
    msc_html_name(out, msc_page__text(msc_json_get(numbers, "agent"), "type"));
    msc_str_printf(out, " · %.0f trials", msc_page__number(counts, "trials"));
    static const char *const states[] = {"pruned", "infeasible", "failed"};
    for (size_t i = 0; i < 3; i++) {
        double n = msc_page__number(counts, states[i]);
        if (n > 0.0) {
            msc_str_printf(out, ", %.0f %s", n, states[i]);
        }
    }
    if (msc_page__number(counts, "elapsed_s") > 0.0) {
        msc_str_append(out, " · ");
        msc_str_append_duration(out, msc_page__number(counts, "elapsed_s"));
    }
    msc_str_append(out, "</p></header>\n");
}

enum msc_status msc_page__record(struct msc_str *out, const cJSON *record, int index) {
    msc_str_printf(out, "<article class=\"record\" id=\"r%d\" aria-labelledby=\"r%d-h\">\n", index,
                   index);
    write_head(out, record, index);
    write_box(out, record, index);
    msc_page__begin(out, index, "plans", "Plans side by side");
    MSC_TRY(msc_page__plans(out, msc_json_get(record, "numbers")));
    msc_page__end(out);
    write_progress(out, record, index);
    write_tradeoff(out, record, index);
    write_choices(out, record, index);
    write_layers(out, record, index);
    msc_page__layers(out, record, index);
    msc_page__effects(out, record, index);
    write_learnt(out, record, index);
    write_graph(out, record, index);
    write_speed(out, record, index);
    MSC_TRY(write_config(out, record, index));
    msc_str_append(out, "</article>\n");
    return MSC_OK;
}
