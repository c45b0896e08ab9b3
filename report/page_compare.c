// Several records beside each other: their results, what their configurations differ in, their plans.
#include "report/page_internal.h"

#include "base/alloc.h"

#include <string.h>

// Differences that anybody reads.
#define MOST_DIFFERENCES 60
#define DEEPEST 12

static void write_results(struct msc_str *out, const cJSON *records) {
    const char *const columns[] = {"record", "to deploy", "objective", "value",
                                   "trials", "seconds",   "agent",     NULL};
    const cJSON *record = NULL;
    int index = 0;
    msc_page__table(out, "Results", columns, "   nnn ");
    cJSON_ArrayForEach(record, records) {
        const cJSON *numbers = msc_page__get(record, "numbers");
        const cJSON *counts = msc_page__get(numbers, "counts");
        const cJSON *first = cJSON_GetArrayItem(msc_page__get(numbers, "objectives"), 0);
        const char *metric = msc_page__text(first, "metric");
        const cJSON *winner = msc_page__get(numbers, "winner");
        msc_page__row(out, NULL);
        msc_str_printf(out, "<th scope=\"row\"><a href=\"#r%d\">", index++);
        msc_html_name(out, msc_page__text(record, "name"));
        msc_str_append(out, "</a></th>");
        msc_page__cell(out, msc_page__text(msc_page__get(record, "verdict"), "headline"));
        msc_page__cell(out, metric);
        msc_page__number_cell(out, msc_page__number(msc_page__get(winner, "metrics"), metric));
        msc_page__number_cell(out, msc_page__number(counts, "trials"));
        msc_page__number_cell(out, msc_page__number(counts, "elapsed_s"));
        msc_page__cell(out, msc_page__text(msc_page__get(numbers, "agent"), "type"));
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
}

// ---- Configurations ---------------------------------------------------------------------------

struct differences {
    const cJSON *records;
    struct msc_str *out;
    int n;
};

// A member of an object, or an item of a list.
struct step {
    const char *key; // NULL: a list
    int index;
};

// What is at the path of another configuration.
static const cJSON *at_path(const cJSON *config, const struct step path[], size_t depth) {
    for (size_t i = 0; i < depth && config; i++) {
        config = path[i].key ? msc_page__get(config, path[i].key)
                             : cJSON_GetArrayItem(config, path[i].index);
    }
    return config;
}

static void write_value(struct msc_str *out, const cJSON *value) {
    struct msc_str json = {0};
    if (value) {
        msc_json_write(&json, value);
    }
    msc_page__cell(out, value ? msc_str_text(&json) : "–");
    out->failed |= json.failed;
    msc_str_finish(&json);
}

static void write_difference(struct differences *d, const struct step path[], size_t depth) {
    struct msc_str name = {0};
    const cJSON *record = NULL;
    for (size_t i = 0; i < depth; i++) {
        if (path[i].key) {
            msc_str_printf(&name, "%s%s", i > 0 ? "." : "", path[i].key);
        } else {
            msc_str_printf(&name, "[%d]", path[i].index);
        }
    }
    msc_page__row(d->out, NULL);
    msc_page__head_cell(d->out, msc_str_text(&name));
    cJSON_ArrayForEach(record, d->records) {
        write_value(d->out, at_path(msc_page__get(record, "config"), path, depth));
    }
    msc_str_append(d->out, "</tr>\n");
    d->out->failed |= name.failed;
    msc_str_finish(&name);
}

static bool are_equal(const struct differences *d, const struct step path[], size_t depth) {
    const cJSON *first = NULL, *record = NULL;
    bool is_first = true, are = true;
    cJSON_ArrayForEach(record, d->records) {
        const cJSON *value = at_path(msc_page__get(record, "config"), path, depth);
        first = is_first ? value : first;
        are = are && (value == first || (value && first && cJSON_Compare(value, first, true)));
        is_first = false;
    }
    return are;
}

// Do both have members of the same names, or are they lists of one length?
static bool have_same_members(const cJSON *a, const cJSON *b) {
    bool have = cJSON_GetArraySize(a) == cJSON_GetArraySize(b) && a && b && a->child &&
                cJSON_IsObject(a) == cJSON_IsObject(b) && cJSON_IsArray(a) == cJSON_IsArray(b);
    for (const cJSON *item = have && cJSON_IsObject(a) ? a->child : NULL; item; item = item->next) {
        have = have && msc_page__get(b, item->string);
    }
    return have;
}

// Goes down as long as all have the same members there.
static void find_differences(struct differences *d, struct step path[], size_t depth) {
    const cJSON *first = at_path(msc_page__get(d->records->child, "config"), path, depth);
    const cJSON *record = NULL, *item = NULL;
    bool goes_down = depth < DEEPEST;
    int index = 0;
    if (are_equal(d, path, depth) || d->n >= MOST_DIFFERENCES) {
        return;
    }
    cJSON_ArrayForEach(record, d->records) {
        const cJSON *value = at_path(msc_page__get(record, "config"), path, depth);
        // The sections of a configuration are shown one by one, whoever has them.
        goes_down = goes_down && (depth == 0 || have_same_members(first, value));
    }
    if (!goes_down) {
        d->n++;
        write_difference(d, path, depth);
        return;
    }
    cJSON_ArrayForEach(item, first) {
        path[depth] = (struct step){item->string, index++};
        find_differences(d, path, depth + 1);
    }
}

static void write_names(struct msc_str *out, const cJSON *records, const char *first) {
    const cJSON *record = NULL;
    msc_str_printf(out,
                   "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"%s\"><table>"
                   "<thead><tr><th scope=\"col\">%s</th>",
                   first, first);
    cJSON_ArrayForEach(record, records) {
        msc_str_append(out, "<th scope=\"col\">");
        msc_html_name(out, msc_page__text(record, "name"));
        msc_str_append(out, "</th>");
    }
    msc_str_append(out, "</tr></thead><tbody>\n");
}

static void write_differences(struct msc_str *out, const cJSON *records) {
    struct step path[DEEPEST + 1] = {{0}};
    struct differences d = {.records = records, .out = out};
    msc_str_append(out, "<h3>Configurations</h3>\n");
    write_names(out, records, "key");
    find_differences(&d, path, 0);
    msc_page__end_table(out);
    if (d.n == 0) {
        msc_str_append(out, "<p class=\"note\">They do not differ.</p>\n");
    }
}

// ---- Plans ------------------------------------------------------------------------------------

static const char *choice_of(const cJSON *record, const char *task) {
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, msc_page__get(record, "plan")) {
        if (strcmp(msc_page__text(row, "task"), task) == 0) {
            return msc_page__text(row, "choice");
        }
    }
    return "–";
}

// Tasks of all records, where their winners choose differently.
static void write_winners(struct msc_str *out, const cJSON *records) {
    enum { MOST = 300 };
    const cJSON *row = NULL;
    int n = 0;
    msc_str_append(out, "<h3>Where the plans differ</h3>\n");
    write_names(out, records, "task");
    cJSON_ArrayForEach(row, msc_page__get(records->child, "plan")) {
        const char *task = msc_page__text(row, "task"), *first = msc_page__text(row, "choice");
        const cJSON *record = NULL;
        bool is_equal = true;
        cJSON_ArrayForEach(record, records) {
            is_equal = is_equal && strcmp(choice_of(record, task), first) == 0;
        }
        if (is_equal || n >= MOST) {
            continue;
        }
        n++;
        msc_page__row(out, NULL);
        msc_page__head_cell(out, task);
        cJSON_ArrayForEach(record, records) {
            msc_page__cell(out, choice_of(record, task));
        }
        msc_str_append(out, "</tr>\n");
    }
    msc_page__end_table(out);
    if (n == 0) {
        msc_str_append(out,
                       "<p class=\"note\">Nowhere, among the tasks of the first record.</p>\n");
    }
}

enum msc_status msc_page__compare(struct msc_str *out, const cJSON *records) {
    msc_str_append(out, "<article class=\"record\" id=\"compare\">\n<header><h1>Side by side</h1>"
                        "</header>\n<section class=\"part\">\n<h2>Results</h2>\n");
    write_results(out, records);
    msc_str_append(out, "<div class=\"charts\">\n");
    msc_page__chart(out, "compare-trials", "The best value so far of each record over the trials");
    msc_page__chart(out, "compare-fronts", "The fronts of the records: objective over cost");
    msc_str_append(out, "</div>\n</section>\n<section class=\"part\">\n<h2>Differences</h2>\n");
    write_differences(out, records);
    write_winners(out, records);
    msc_str_append(out, "</section>\n</article>\n");
    return msc_str_status(out);
}
