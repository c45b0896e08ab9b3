// Takes the points of a file: writes new points to the lists of the member `warm`.
#include "search/warm_internal.h"

#include <string.h>

int64_t msc_warm__find_choice(const struct msc_task *task, const char *label) {
    for (uint32_t c = 0; c < task->n_choices; c++) {
        if (strcmp(task->labels[c], label) == 0) {
            return c;
        }
    }
    return -1;
}

// Points are stored as text: as JSON trees they would need a hundred times the memory.
static void write_choices(struct msc_str *out, const uint32_t choices[], size_t n_tasks) {
    for (size_t t = 0; t < n_tasks; t++) {
        msc_str_char(out, t == 0 ? '[' : ',');
        msc_str_u64(out, choices[t]);
    }
    msc_str_char(out, ']');
}

static void begin_element(struct msc_str *list) {
    msc_str_char(list, list->length == 0 ? '[' : ',');
}

static void write_told(struct msc_warm_taking *w, const uint32_t choices[],
                       const double metrics[]) {
    struct msc_str *out = &w->told;
    const char *before = "";
    begin_element(out);
    msc_str_append(out, "{\"choices\":");
    write_choices(out, choices, w->space->n_tasks);
    msc_str_append(out, ",\"metrics\":{");
    for (size_t i = 0; i < w->space->n_metrics; i++) {
        if (!w->space->metrics[i].is_exact) {
            msc_str_append(out, before);
            msc_json_write_text(out, w->space->metrics[i].name);
            msc_str_char(out, ':');
            msc_json_write_number(out, metrics[i]);
            before = ",";
        }
    }
    msc_str_append(out, "}}");
}

bool msc_warm__is_new(const struct msc_warm_taking *w, const struct msc_warm_source *source) {
    return msc_points_find(&w->points, msc_point_hash(source->choices, w->space->n_tasks)) < 0;
}

enum msc_status msc_warm__take(struct msc_warm_taking *w, struct msc_warm_source *source,
                               const double metrics[]) {
    size_t n_tasks = w->space->n_tasks;
    bool is_outside =
        !metrics && msc_goal_exact_violation(w->options->goal, w->space, source->choices) > 0.0;
    if (is_outside || !msc_warm__is_new(w, source)) {
        return MSC_OK;
    }
    MSC_TRY(msc_points_set(&w->points, msc_point_hash(source->choices, n_tasks), 0));
    if (metrics) {
        source->n_told++;
        write_told(w, source->choices, metrics);
        return msc_str_status(&w->told);
    }
    source->n_tried++;
    begin_element(&w->tried);
    write_choices(&w->tried, source->choices, n_tasks);
    return msc_str_status(&w->tried);
}
