// Several records side by side: their results, and the differences of configurations and plans.
#include "report/page_internal.h"

#include "base/alloc.h"
#include "results/differences.h"

#include <string.h>

// At most this many differences are listed, and metrics of the results.
#define MOST_DIFFERENCES 60
enum { MOST_METRICS = 8 };

// Writes a cell of text. Words are not broken on a narrow page.
static void write_words(struct msc_str *out, const char *text) {
    msc_str_append(out, "<td class=\"words\">");
    msc_html_text(out, text);
    msc_str_append(out, "</td>");
}

// The metrics of the table: accuracy, what the first record bounds, and its objectives.
static size_t list_metrics(const char *metrics[MOST_METRICS], const cJSON *records) {
    static const char *const lists[] = {"bounds", "objectives"};
    const cJSON *numbers = msc_json_get(records->child, "numbers"), *item = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(item, records) {
        const cJSON *plan = msc_json_get(msc_json_get(item, "delivered"), "metrics");
        if (msc_json_get(plan, "accuracy") && n == 0) {
            metrics[n++] = "accuracy";
        }
    }
    for (size_t l = 0; l < 2; l++) {
        cJSON_ArrayForEach(item, msc_json_get(numbers, lists[l])) {
            const char *metric = msc_page__text(item, "metric");
            bool is_new = true;
            for (size_t i = 0; i < n; i++) {
                is_new = is_new && strcmp(metrics[i], metric) != 0;
            }
            if (is_new && n < MOST_METRICS) {
                metrics[n++] = metric;
            }
        }
    }
    return n;
}

static void write_result(struct msc_str *out, const cJSON *record, int index,
                         const char *const metrics[], size_t n) {
    const cJSON *numbers = msc_json_get(record, "numbers");
    const cJSON *counts = msc_json_get(numbers, "counts");
    const cJSON *plan = msc_json_get(msc_json_get(record, "delivered"), "metrics");
    msc_page__row(out, NULL);
    msc_str_printf(out, "<th scope=\"row\"><a href=\"#r%d\">", index);
    msc_html_name(out, msc_page__text(record, "name"));
    msc_str_append(out, "</a></th>");
    write_words(out, msc_page__text(msc_json_get(record, "verdict"), "headline"));
    for (size_t i = 0; i < n; i++) {
        msc_page__quantity_cell(out, metrics[i], msc_page__number(plan, metrics[i]));
    }
    msc_page__number_cell(out, msc_page__number(counts, "trials"));
    msc_str_append(out, "<td class=\"n\">");
    msc_str_append_duration(out, msc_page__number(counts, "elapsed_s"));
    msc_str_append(out, "</td>");
    write_words(out, msc_page__text(msc_json_get(numbers, "agent"), "type"));
    msc_str_append(out, "</tr>\n");
}

static void write_results(struct msc_str *out, const cJSON *records) {
    const char *columns[2 + MOST_METRICS + 4] = {"record", "to deploy"};
    char kinds[2 + MOST_METRICS + 4] = "  ";
    const cJSON *record = NULL;
    size_t n = list_metrics(columns + 2, records);
    int index = 0;
    memset(kinds + 2, 'n', n + 2);
    columns[2 + n] = "trials";
    columns[3 + n] = "time";
    columns[4 + n] = "agent";
    msc_page__table(out, "Results", columns, kinds);
    cJSON_ArrayForEach(record, records) {
        write_result(out, record, index++, columns + 2, n);
    }
    msc_page__end_table(out);
}

// ---- Configurations ---------------------------------------------------------------------------

static void write_value(struct msc_str *out, const cJSON *value) {
    struct msc_str json = {0};
    bool is_there = !cJSON_IsNull(value);
    if (is_there) {
        msc_json_write(&json, value);
    }
    msc_page__cell(out, is_there ? msc_str_text(&json) : "–");
    out->failed |= json.failed;
    msc_str_finish(&json);
}

static void write_names(struct msc_str *out, const cJSON *records, const char *first) {
    const cJSON *record = NULL;
    msc_str_printf(
        out,
        "<div class=\"scroll beside\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>"
        "<thead><tr><th scope=\"col\">%s</th>",
        first, first);
    cJSON_ArrayForEach(record, records) {
        msc_str_append(out, "<th scope=\"col\">");
        msc_html_name(out, msc_page__text(record, "name"));
        msc_str_append(out, "</th>");
    }
    msc_str_append(out, "</tr></thead><tbody>\n");
}

static enum msc_status write_differences(struct msc_str *out, const cJSON *const configs[],
                                         const cJSON *records) {
    const cJSON *row = NULL, *value = NULL;
    cJSON *differences = NULL;
    size_t n = (size_t)cJSON_GetArraySize(records);
    MSC_TRY(msc_differences_of_configs(&differences, configs, n, MOST_DIFFERENCES));
    msc_str_append(out, "<h3>Configurations</h3>\n");
    write_names(out, records, "key");
    cJSON_ArrayForEach(row, differences) {
        msc_page__row(out, NULL);
        msc_page__head_cell(out, msc_page__text(row, "key"));
        cJSON_ArrayForEach(value, msc_json_get(row, "values")) {
            write_value(out, value);
        }
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    if (!differences->child) {
        msc_str_append(out, "<p class=\"note\">The configurations are the same.</p>\n");
    }
    cJSON_Delete(differences);
    return MSC_OK;
}

// ---- Plans ------------------------------------------------------------------------------------

static enum msc_status fill_choices(cJSON *choices, const cJSON *plan) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, plan) {
        MSC_TRY(
            msc_json_add_text(choices, msc_page__text(row, "task"), msc_page__text(row, "choice")));
    }
    return MSC_OK;
}

// The plans of records as {task: choice}, or NULL if a record has none. `list` owns them.
static enum msc_status list_plans(const cJSON *plans[], cJSON *list, const cJSON *records) {
    const cJSON *record = NULL;
    size_t i = 0;
    cJSON_ArrayForEach(record, records) {
        const cJSON *plan = msc_json_get(record, "plan");
        cJSON *choices = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, choices));
        MSC_TRY(fill_choices(choices, plan));
        plans[i++] = plan ? choices : NULL;
    }
    return MSC_OK;
}

static void write_winners(struct msc_str *out, const cJSON *records, const cJSON *beside) {
    enum { MOST = 300 };
    const cJSON *row = NULL, *choice = NULL;
    int n = 0;
    msc_str_append(out, "<h3>Where the plans differ</h3>\n");
    write_names(out, records, "task");
    cJSON_ArrayForEach(row, msc_json_get(beside, "tasks")) {
        if (!cJSON_IsTrue(msc_json_get(row, "differ")) || n++ >= MOST) {
            continue;
        }
        msc_page__row(out, NULL);
        msc_page__head_cell(out, msc_page__text(row, "task"));
        cJSON_ArrayForEach(choice, msc_json_get(row, "choices")) {
            msc_page__cell(out, cJSON_IsString(choice) ? choice->valuestring : "–");
        }
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    if (n == 0) {
        msc_str_append(out, "<p class=\"note\">The plans are the same.</p>\n");
    } else if (n > MOST) {
        msc_str_printf(out, "<p class=\"note\">The plans differ in %d more tasks.</p>\n", n - MOST);
    }
}

// `of` is scratch memory with an entry for each record.
static enum msc_status write_plans(struct msc_str *out, const cJSON *of[], const cJSON *records) {
    cJSON *list = cJSON_CreateArray(), *beside = NULL;
    enum msc_status status = list_plans(of, list, records);
    if (status == MSC_OK) {
        status = msc_differences_of_plans(&beside, of, (size_t)cJSON_GetArraySize(records));
    }
    if (status == MSC_OK) {
        write_winners(out, records, beside);
    }
    cJSON_Delete(beside);
    cJSON_Delete(list);
    return status;
}

static enum msc_status write_all_differences(struct msc_str *out, const cJSON *records) {
    const cJSON **of = msc_alloc_zero((size_t)cJSON_GetArraySize(records), sizeof *of);
    const cJSON *record = NULL;
    size_t i = 0;
    MSC_TRY(MSC_ALLOCATED(of));
    cJSON_ArrayForEach(record, records) {
        of[i++] = msc_json_get(record, "config");
    }
    enum msc_status status = write_differences(out, of, records);
    if (status == MSC_OK) {
        status = write_plans(out, of, records);
    }
    msc_free(of);
    return status;
}

static void write_best(struct msc_str *out, const cJSON *verdict) {
    msc_str_printf(out,
                   "<section class=\"part box box-%s\" id=\"best\" aria-labelledby=\"best-h\">\n"
                   "<h2 id=\"best-h\">",
                   msc_page__text(verdict, "kind"));
    msc_html_text(out, msc_page__text(verdict, "headline"));
    msc_str_append(out, "</h2>\n");
    msc_page__reasons(out, verdict);
    msc_page__end(out);
}

enum msc_status msc_page__compare(struct msc_str *out, const cJSON *records, const cJSON *verdict) {
    msc_str_append(out, "<article class=\"record\" id=\"compare\">\n<header><h1>Side by side</h1>"
                        "</header>\n");
    write_best(out, verdict);
    msc_str_append(out, "<section class=\"part\">\n<h2>Results</h2>\n");
    write_results(out, records);
    msc_str_append(out, "<div class=\"charts\">\n");
    msc_page__chart(out, "compare-trials", "The best value so far of each record over the trials");
    msc_page__chart(out, "compare-fronts", "The fronts of the records: objective over cost");
    msc_str_append(out, "</div>\n</section>\n");
    MSC_TRY(msc_page__beside(out, records));
    msc_str_append(out, "<section class=\"part\">\n<h2>Differences</h2>\n");
    MSC_TRY(write_all_differences(out, records));
    msc_str_append(out, "</section>\n</article>\n");
    return msc_str_status(out);
}
