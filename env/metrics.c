// Works on the table of metrics: chooses those of a search, builds their exact costs, and fills
// outcomes and reports.
#include "base/alloc.h"
#include "base/json.h"
#include "data/dataset.h"
#include "env/api/drop.h"
#include "env/metrics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_of_run(const struct msc_metric_row *row) {
    return row->of_run || row->sample;
}

// ---- Metrics of an environment ----------------------------------------------------------------

static const struct msc_env_metric *find_own(const struct msc_env_metric list[],
                                             const struct msc_metric_row *row) {
    while (list->name && strcmp(list->name, row->metric.name) != 0) {
        list++;
    }
    return list->name ? list : NULL;
}

static bool has_metric(const struct msc_env_metric list[], const struct msc_metric_row *row) {
    return is_of_run(row) || find_own(list, row);
}

const struct msc_metric *msc_metric_at(const struct msc_env_metric list[], size_t index) {
    const struct msc_metric_row *row = msc_metric_table;
    for (size_t n = 0; row->metric.name; row++) {
        if (has_metric(list, row) && n++ == index) {
            return &row->metric;
        }
    }
    return NULL;
}

// ---- Metrics of a search ----------------------------------------------------------------------

// True if a bound limits the metric's drop from the float model (env/goal.c reads these bounds).
static bool asks_for_drop(const struct cJSON *config, const char *metric) {
    static const char *const ends[] = {MSC_DROP_SUFFIX, MSC_DROP_RATIO_SUFFIX};
    const cJSON *bounds = msc_json_get(config, "bounds");
    bool is_asked = msc_json_get(msc_json_get(bounds, metric), "drop") != NULL;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s%s", metric, ends[i]);
        is_asked = is_asked || msc_json_get(bounds, name);
    }
    return is_asked;
}

// True if an objective or a bound names the metric.
static bool asks_for(const struct cJSON *config, const char *metric) {
    const cJSON *bounds = msc_json_get(config, "bounds");
    const cJSON *item;
    cJSON_ArrayForEach(item, msc_json_get(config, "objectives")) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, metric) == 0) {
            return true;
        }
    }
    return msc_json_get(bounds, metric) || asks_for_drop(config, metric);
}

// True if an objective or a bound names the ratio of the metric.
static bool asks_for_ratio(const struct cJSON *config, const char *metric) {
    const struct msc_metric_row *row = msc_metric_table;
    while (row->metric.name && (!row->ratio_of || strcmp(row->ratio_of, metric) != 0)) {
        row++;
    }
    return row->metric.name && asks_for(config, row->metric.name);
}

static enum msc_status fail_for(const struct msc_metric_row *row, unsigned lacking) {
    static const struct {
        unsigned need;
        const char *text;
    } texts[] = {{MSC_METRIC_NEEDS_LABELS,
                  "the samples have no labels; add dataset.labels, a .npy of integers, one for "
                  "each sample, or bound \"distill_loss\", which needs none"},
                 {MSC_METRIC_NEEDS_NEXT,
                  "the labels are not the next tokens; set dataset.labels to \"" MSC_LABELS_NEXT
                  "\""},
                 {MSC_METRIC_NEEDS_COMMAND,
                  "env.command names no program; set it to [\"./score.py\", \"{model}\"]"}};
    size_t i = 0;
    while (!(texts[i].need & lacking)) {
        i++;
        assert(i < sizeof(texts) / sizeof(texts[0]));
    }
    return MSC_FAIL(MSC_E_INVALID, "env: \"%s\" is an objective or a bound, but %s",
                    row->metric.name, texts[i].text);
}

static void choose_metric(struct msc_metrics *m, const struct msc_metric_row *row,
                          const struct msc_env_metric *own, int index, bool has_drop) {
    m->chosen[m->n] =
        (struct msc_metric_chosen){.row = row, .own = own, .index = index, .in_run = m->n_sampled};
    if (row->sample) {
        m->sampled[m->n_sampled++] =
            (struct msc_sample_metric){.sample = row->sample,
                                       .needs_labels = row->needs & MSC_METRIC_NEEDS_LABELS,
                                       .needs_next = row->needs & MSC_METRIC_NEEDS_NEXT,
                                       .has_drop = has_drop};
    }
    m->n++;
}

enum msc_status msc_metrics_choose(struct msc_metrics *out, const struct msc_env_metric list[],
                                   const struct msc_env_host *host, const struct cJSON *config) {
    unsigned met = msc_dataset_has_labels(host->dataset) ? MSC_METRIC_NEEDS_LABELS : 0;
    met |= msc_dataset_has_next(host->dataset) ? MSC_METRIC_NEEDS_NEXT : 0;
    const cJSON *command = msc_json_get(config, "command");
    int n_indices = 0;
    *out = (struct msc_metrics){.command_is_maximised =
                                    cJSON_IsTrue(msc_json_get(command, "maximise"))};
    met |= command && !cJSON_IsNull(command) ? MSC_METRIC_NEEDS_COMMAND : 0;
    for (const struct msc_metric_row *row = msc_metric_table; row->metric.name; row++) {
        if (!has_metric(list, row)) {
            continue;
        }
        bool is_asked =
            asks_for(config, row->metric.name) || asks_for_ratio(config, row->metric.name);
        unsigned lacking = row->needs & ~(is_asked ? met | MSC_METRIC_NEEDS_ASKING : met);
        if (is_asked && lacking != 0) {
            return fail_for(row, lacking);
        }
        if ((lacking & MSC_METRIC_NEEDS_ASKING) == 0) {
            choose_metric(out, row, find_own(list, row), lacking == 0 ? n_indices++ : -1,
                          asks_for_drop(config, row->metric.name));
        }
    }
    return MSC_OK;
}

bool msc_metrics_has(const struct msc_metrics *m, const char *name) {
    size_t i = 0;
    while (i < m->n && strcmp(m->chosen[i].row->metric.name, name) != 0) {
        i++;
    }
    return i < m->n;
}

// ---- In the space -----------------------------------------------------------------------------

// Makes room in the arena for another term.
static enum msc_status reserve_term(struct msc_metric_cost *cost) {
    if (cost->n_terms < cost->capacity) {
        return MSC_OK;
    }
    size_t capacity = cost->capacity > 0 ? 2 * cost->capacity : 16;
    struct msc_cost_term *terms = msc_arena_array(cost->arena, capacity, sizeof(terms[0]));
    MSC_TRY(MSC_ALLOCATED(terms));
    for (size_t i = 0; i < cost->n_terms; i++) {
        terms[i] = cost->terms[i];
    }
    cost->terms = terms;
    cost->capacity = capacity;
    return MSC_OK;
}

enum msc_status msc_metric_add_term(struct msc_metric_cost *cost, double scale, size_t n_factors,
                                    const uint32_t tasks[], const double *const by_choice[]) {
    struct msc_cost_factor *factors = msc_arena_array(cost->arena, n_factors, sizeof(factors[0]));
    MSC_TRY(MSC_ALLOCATED(factors));
    for (size_t i = 0; i < n_factors; i++) {
        factors[i] = (struct msc_cost_factor){tasks[i], by_choice[i]};
    }
    MSC_TRY(reserve_term(cost));
    cost->terms[cost->n_terms++] = (struct msc_cost_term){scale, (uint32_t)n_factors, factors};
    return MSC_OK;
}

// Divides every scale and the constant by the float model's value.
static enum msc_status build_ratio(struct msc_metric_cost *out, const struct msc_metric_cost *of) {
    double divisor = of->reference > 0 ? of->reference : 1;
    out->constant = of->constant / divisor;
    out->reference = 1;
    for (size_t i = 0; i < of->n_terms; i++) {
        MSC_TRY(reserve_term(out));
        out->terms[i] = of->terms[i];
        out->terms[i].scale /= divisor;
        out->n_terms++;
    }
    return MSC_OK;
}

// The exact metric of this name, whose row must be earlier in the table.
static const struct msc_metric_cost *find_cost(const struct msc_metric_cost built[],
                                               const struct msc_metrics *m, const char *name) {
    size_t i = 0;
    while (strcmp(m->chosen[i].row->metric.name, name) != 0) {
        i++;
        assert(i < m->n);
    }
    return &built[i];
}

enum msc_status msc_metrics_build(struct msc_space *space, double references[],
                                  const struct msc_metrics *m, const void *of,
                                  struct msc_arena *arena) {
    struct msc_metric_cost built[MSC_MAX_METRICS] = {{0}};
    struct msc_metric *metrics = msc_arena_array(arena, m->n, sizeof(metrics[0]));
    struct msc_cost *costs = msc_arena_array(arena, m->n, sizeof(costs[0]));
    MSC_TRY(MSC_ALLOCATED(metrics && costs));
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_row *row = m->chosen[i].row;
        const struct msc_env_metric *own = m->chosen[i].own;
        struct msc_metric_cost *cost = &built[i];
        int index = m->chosen[i].index;
        if (index < 0) {
            continue;
        }
        cost->arena = arena;
        cost->reference = row->metric.is_exact || row->is_distance ? 0 : NAN;
        MSC_TRY(own && own->cost ? own->cost(cost, of)
                : row->ratio_of  ? build_ratio(cost, find_cost(built, m, row->ratio_of))
                                 : MSC_OK);
        if (row->metric.is_exact) {
            costs[space->n_costs++] =
                (struct msc_cost){row->metric.name, cost->constant, cost->n_terms, cost->terms};
        }
        references[index] = cost->reference;
        metrics[space->n_metrics] = row->metric;
        metrics[space->n_metrics++].is_maximised |=
            (row->needs & MSC_METRIC_NEEDS_COMMAND) && m->command_is_maximised;
    }
    space->metrics = metrics;
    space->costs = costs;
    return MSC_OK;
}

// ---- In outcomes and reports ------------------------------------------------------------------

static bool is_before(const struct msc_metric_chosen *c) {
    return c->own && c->own->measure && c->index >= 0;
}

enum msc_status msc_metrics_before(double metrics[], const struct msc_metrics *m,
                                   const struct msc_env *env, const uint32_t choices[],
                                   const struct msc_edit *const edits[]) {
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_chosen *c = &m->chosen[i];
        if (is_before(c)) {
            MSC_TRY(c->own->measure(&metrics[c->index], env, choices, edits));
        }
    }
    return MSC_OK;
}

bool msc_metrics_has_before(const struct msc_metrics *m) {
    for (size_t i = 0; i < m->n; i++) {
        if (is_before(&m->chosen[i])) {
            return true;
        }
    }
    return false;
}

static double value_of_run(const struct msc_metric_chosen *c, const struct msc_distill_run *run) {
    return c->row->of_run ? c->row->of_run(run) : run->metrics[c->in_run];
}

void msc_metrics_after(double metrics[], const struct msc_metrics *m,
                       const struct msc_distill_run *run) {
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_chosen *c = &m->chosen[i];
        if (is_of_run(c->row) && c->index >= 0) {
            metrics[c->index] = value_of_run(c, run);
        }
    }
}

// Adds the drop of a metric from the float model, and its standard error. Runs count drops as the
// float model's value less the run's.
static enum msc_status add_drop(cJSON *object, const struct msc_metric *metric,
                                const struct msc_sample_drop *drop) {
    char name[64];
    snprintf(name, sizeof name, "%s" MSC_DROP_SUFFIX, metric->name);
    MSC_TRY(msc_json_add_number(object, name, metric->is_maximised ? drop->mean : -drop->mean));
    snprintf(name, sizeof name, "%s" MSC_DROP_ERROR_SUFFIX, metric->name);
    return isnan(drop->standard_error) ? MSC_OK
                                       : msc_json_add_number(object, name, drop->standard_error);
}

enum msc_status msc_metrics_add(struct cJSON *object, const struct msc_metrics *m,
                                const struct msc_distill_run *run) {
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_chosen *c = &m->chosen[i];
        // A metric of samples is NaN if the samples lack labels.
        if (c->row->of_run || (c->row->sample && !isnan(value_of_run(c, run)))) {
            MSC_TRY(msc_json_add_number(object, c->row->metric.name, value_of_run(c, run)));
        }
        if (c->row->sample && !isnan(value_of_run(c, run)) && m->sampled[c->in_run].has_drop) {
            MSC_TRY(add_drop(object, &c->row->metric, &run->drops[c->in_run]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_metrics_add_float(struct cJSON *object, const struct msc_metrics *m,
                                      const struct msc_distill_run *run) {
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_row *row = m->chosen[i].row;
        double value = is_of_run(row) && !row->is_distance ? value_of_run(&m->chosen[i], run) : NAN;
        char name[64];
        if (!isnan(value)) {
            snprintf(name, sizeof(name), "float_%s", row->metric.name);
            MSC_TRY(msc_json_add_number(object, name, value));
        }
    }
    return MSC_OK;
}

bool msc_metrics_need_float(const struct msc_metrics *m) {
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_chosen *c = &m->chosen[i];
        if (is_of_run(c->row) && !c->row->is_distance && c->index >= 0) {
            return true;
        }
    }
    return false;
}
