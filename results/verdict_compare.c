#include "results/verdict_compare.h"

#include "base/alloc.h"
#include "base/shown.h"
#include "results/verdict_internal.h"
#include "results/differences.h"
#include "results/report.h"
#include "results/units.h"

#include <math.h>
#include <string.h>

// At most this many records, and at most this many keys, are listed by name.
#define MOST_TOLD 6
// At most this many keys of the configurations are compared.
#define MOST_KEYS 60

struct comparison {
    const cJSON *records;
    const cJSON *best;  // the record with the best plan; NULL: no record has a plan to deploy
    const char *metric; // first objective of all records
    bool is_maximised;
    cJSON *verdict, *reasons;
    struct msc_str text; // the sentence being written
};

static const char *text_of(const cJSON *object, const char *key) {
    const cJSON *item = msc_json_get(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static const cJSON *objective_of(const cJSON *record) {
    return cJSON_GetArrayItem(msc_json_get(msc_json_get(record, "numbers"), "objectives"), 0);
}

// The objective of the delivered plan; NaN if none meets the bounds.
static double value_of(const struct comparison *c, const cJSON *record) {
    const cJSON *plan = msc_json_get(record, "delivered");
    bool may = strcmp(text_of(plan, "state"), msc_trial_state_name(MSC_TRIAL_COMPLETE)) == 0;
    return may ? msc_json_number_of(msc_json_get(plan, "metrics"), c->metric) : NAN;
}

static enum msc_status end_reason(struct comparison *c) {
    MSC_TRY(msc_str_status(&c->text));
    MSC_TRY(msc_json_push(c->reasons, cJSON_CreateString(msc_str_text(&c->text))));
    msc_str_clear(&c->text);
    return MSC_OK;
}

// Writes the record's name, or its path if another record has the same name.
static void write_name(struct comparison *c, const cJSON *record) {
    const cJSON *other = NULL;
    size_t n = 0;
    cJSON_ArrayForEach(other, c->records) {
        n += strcmp(text_of(other, "name"), text_of(record, "name")) == 0;
    }
    msc_shown_append(&c->text, text_of(record, n > 1 ? "path" : "name"));
}

// ---- Which is the best ------------------------------------------------------------------------

static bool have_one_objective(struct comparison *c) {
    const cJSON *record = NULL, *first = objective_of(c->records->child);
    c->metric = text_of(first, "metric");
    c->is_maximised = cJSON_IsTrue(msc_json_get(first, "maximise"));
    cJSON_ArrayForEach(record, c->records) {
        const cJSON *objective = objective_of(record);
        if (strcmp(text_of(objective, "metric"), c->metric) != 0 ||
            cJSON_IsTrue(msc_json_get(objective, "maximise")) != c->is_maximised) {
            return false;
        }
    }
    return true;
}

static bool is_better(const struct comparison *c, double value, double than) {
    return !isnan(value) && (isnan(than) || (c->is_maximised ? value > than : value < than));
}

// Finds the record with the best plan. The first record wins a tie.
static void find_best(struct comparison *c) {
    const cJSON *record = NULL;
    double best = NAN;
    cJSON_ArrayForEach(record, c->records) {
        double value = value_of(c, record);
        if (is_better(c, value, best)) {
            best = value;
            c->best = record;
        }
    }
}

// ---- Reasons ----------------------------------------------------------------------------------

static bool have_one_plan(const cJSON *a, const cJSON *b) {
    return msc_json_get(a, "plan") &&
           cJSON_Compare(msc_json_get(a, "plan"), msc_json_get(b, "plan"), true);
}

// Writes a comparison such as "random: 2.01 times as much, 0.0001151."
static enum msc_status add_other(struct comparison *c, const cJSON *record) {
    double ours = value_of(c, c->best), theirs = value_of(c, record);
    double times = theirs / ours;
    write_name(c, record);
    if (isnan(theirs)) {
        msc_str_append(&c->text, ": no plan meets its bounds.");
    } else if (have_one_plan(c->best, record)) {
        msc_str_append(&c->text, ": the same plan.");
    } else if (theirs == ours) {
        msc_str_append(&c->text, ": another plan, equally good.");
    } else {
        msc_str_append(&c->text, ": ");
        if (isfinite(times) && times > 0.0) {
            msc_str_printf(&c->text, "%.3g times as much, ", times);
        }
        msc_unit_value(&c->text, c->metric, theirs);
        msc_str_char(&c->text, '.');
    }
    return end_reason(c);
}

static enum msc_status add_standing(struct comparison *c) {
    msc_str_printf(&c->text, "It has the %s ", c->is_maximised ? "greatest" : "least");
    msc_unit_phrase(&c->text, c->metric);
    msc_str_append(&c->text, ", ");
    msc_unit_value(&c->text, c->metric, value_of(c, c->best));
    msc_str_printf(&c->text, ", of the plans that these %d searches would deploy.",
                   cJSON_GetArraySize(c->records));
    return end_reason(c);
}

static enum msc_status add_others(struct comparison *c) {
    const cJSON *record = NULL;
    int n = 0;
    cJSON_ArrayForEach(record, c->records) {
        if (record != c->best && n++ < MOST_TOLD) {
            MSC_TRY(add_other(c, record));
        }
    }
    if (n <= MOST_TOLD) {
        return MSC_OK;
    }
    msc_str_printf(&c->text, "%d more are in the table.", n - MOST_TOLD);
    return end_reason(c);
}

// True if the key only affects how the search runs, so that results remain comparable. `key` is
// like "quantize.gym[0].agent.type".
static bool is_of_the_search(const char *key) {
    static const char *const parts[] = {"agent", "budget",        "parallel",  "race",   "record",
                                        "seed",  "strategy_file", "workspace", "verbose"};
    while (key[0] != '\0') {
        size_t length = strcspn(key, ".[");
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (strlen(parts[i]) == length && memcmp(key, parts[i], length) == 0) {
                return true;
            }
        }
        key += length;
        key += strcspn(key, ".");
        key += key[0] == '.';
    }
    return false;
}

// Warns of configuration keys that differ and make the results less comparable.
static enum msc_status add_caution(struct comparison *c, const cJSON *differences) {
    const cJSON *row = NULL;
    int n = 0;
    cJSON_ArrayForEach(row, differences) {
        if (is_of_the_search(text_of(row, "key")) || n++ >= MOST_TOLD) {
            continue;
        }
        msc_str_append(&c->text, n == 1 ? "Caution: the searches also differ in " : ", ");
        msc_shown_append(&c->text, text_of(row, "key"));
    }
    if (n == 0) {
        return MSC_OK;
    }
    msc_str_append(&c->text, n > MOST_TOLD ? " and more." : ".");
    return end_reason(c);
}

static enum msc_status add_differences(struct comparison *c) {
    size_t n = (size_t)cJSON_GetArraySize(c->records), i = 0;
    const cJSON **configs = msc_alloc_zero(n, sizeof *configs);
    const cJSON *record = NULL;
    cJSON *differences = NULL;
    MSC_TRY(MSC_ALLOCATED(configs));
    cJSON_ArrayForEach(record, c->records) {
        configs[i++] = msc_json_get(record, "config");
    }
    enum msc_status status = msc_differences_of_configs(&differences, configs, n, MOST_KEYS);
    if (status == MSC_OK) {
        status = add_caution(c, differences);
    }
    cJSON_Delete(differences);
    msc_free(configs);
    return status;
}

// Copies the record's own reasons, except the first (its rank) and the last (whether the search has
// ended).
static enum msc_status add_own_reasons(struct comparison *c) {
    const cJSON *own = msc_json_get(msc_json_get(c->best, "verdict"), "reasons");
    int n = cJSON_GetArraySize(own);
    for (int i = 1; i + 1 < n; i++) {
        msc_str_append(&c->text, cJSON_GetArrayItem(own, i)->valuestring);
        MSC_TRY(end_reason(c));
    }
    return MSC_OK;
}

static bool is_running(const cJSON *record) {
    return !msc_json_get(msc_json_get(record, "numbers"), "end");
}

static enum msc_status add_ends(struct comparison *c) {
    const cJSON *record = NULL;
    int n = 0;
    cJSON_ArrayForEach(record, c->records) {
        n += is_running(record);
    }
    if (n == 0) {
        return MSC_OK;
    }
    msc_str_printf(&c->text, "%d of the searches %s not ended: this may still change.", n,
                   n == 1 ? "has" : "have");
    return end_reason(c);
}

// ---- The verdict -------------------------------------------------------------------------------

static enum msc_status add_kind(struct comparison *c, const char *kind) {
    MSC_TRY(msc_str_status(&c->text));
    MSC_TRY(msc_json_add_text(c->verdict, "kind", kind));
    MSC_TRY(msc_json_add_text(c->verdict, "headline", msc_str_text(&c->text)));
    msc_str_clear(&c->text);
    c->reasons = cJSON_CreateArray();
    return msc_json_add(c->verdict, "reasons", c->reasons);
}

static enum msc_status fill_best(struct comparison *c) {
    const cJSON *own = msc_json_get(c->best, "verdict");
    write_name(c, c->best);
    msc_str_append(&c->text, ": ");
    // The headline is already safe to show (base/shown.h).
    msc_str_append(&c->text, text_of(own, "headline"));
    MSC_TRY(add_kind(c, text_of(own, "kind")));
    MSC_TRY(add_standing(c));
    MSC_TRY(add_own_reasons(c));
    MSC_TRY(add_others(c));
    MSC_TRY(add_differences(c));
    MSC_TRY(add_ends(c));
    return msc_json_get(own, "command")
               ? msc_json_add_text(c->verdict, "command", text_of(own, "command"))
               : MSC_OK;
}

static enum msc_status fill(struct comparison *c) {
    if (!have_one_objective(c)) {
        msc_str_append(&c->text, "These searches had different objectives: each has a best plan "
                                 "of its own.");
        return add_kind(c, "none");
    }
    find_best(c);
    if (!c->best) {
        msc_str_append(&c->text,
                       "There is nothing to deploy: no trial of these searches meets every bound.");
        MSC_TRY(add_kind(c, "infeasible"));
        return add_ends(c);
    }
    return fill_best(c);
}

enum msc_status msc_verdict_compare(struct cJSON **out, const struct cJSON *records) {
    struct comparison c = {.records = records, .verdict = cJSON_CreateObject()};
    enum msc_status status = c.verdict ? fill(&c) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_str_finish(&c.text);
    if (status != MSC_OK) {
        cJSON_Delete(c.verdict);
        return status;
    }
    *out = c.verdict;
    return MSC_OK;
}
