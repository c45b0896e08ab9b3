// What is done with rows of metrics: choosing those of a search, building their costs, filling
// outcomes and reports.
#include "base/alloc.h"
#include "base/json.h"
#include "data/dataset.h"
#include "env/metrics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_of_run(const struct msc_metric_row *row) {
    return row->of_run || row->sample;
}

// ---- Rows that are shared ---------------------------------------------------------------------

double msc_metric_loss(const struct msc_distill_run *run) {
    return run->loss;
}

// 1 where the greatest class score is that of the label.
double msc_metric_is_correct(const struct msc_sample *s) {
    struct msc_sample_tensor scores = msc_sample_class_scores(s);
    int64_t best = 0;
    for (int64_t i = 1; i < scores.n; i++) {
        best = scores.z[i] > scores.z[best] ? i : best;
    }
    return best == msc_sample_label(s);
}

// ---- Which ------------------------------------------------------------------------------------

// Does the goal name the metric?
static bool asks_for(const struct cJSON *config, const char *metric) {
    const cJSON *bounds = cJSON_GetObjectItemCaseSensitive(config, "bounds");
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(config, "objectives")) {
        if (cJSON_IsString(item) && strcmp(item->valuestring, metric) == 0) {
            return true;
        }
    }
    return cJSON_GetObjectItemCaseSensitive(bounds, metric) != NULL;
}

// Does it name the ratio of the metric?
static bool asks_for_ratio(const struct cJSON *config, const struct msc_metric_row table[],
                           const char *metric) {
    const struct msc_metric_row *row = table;
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
                  "the samples have no labels; give dataset.labels, a .npy of integers, one for "
                  "each sample"},
                 {MSC_METRIC_NEEDS_COMMAND,
                  "there is no program; name it in env.command: [\"./score.py\", \"{model}\"]"}};
    size_t i = 0;
    while (!(texts[i].need & lacking)) {
        i++;
        assert(i < sizeof(texts) / sizeof(texts[0]));
    }
    return MSC_FAIL(MSC_E_INVALID, "env: \"%s\" is an objective or a bound, but %s",
                    row->metric.name, texts[i].text);
}

static void choose_metric(struct msc_metrics *m, const struct msc_metric_row *row, int index) {
    m->rows[m->n] = row;
    m->indices[m->n] = index;
    if (row->sample) {
        m->in_run[m->n] = m->n_sampled;
        m->sampled[m->n_sampled++] =
            (struct msc_sample_metric){row->sample, (row->needs & MSC_METRIC_NEEDS_LABELS) != 0};
    }
    m->n++;
}

enum msc_status msc_metrics_choose(struct msc_metrics *out, const struct msc_metric_row table[],
                                   const struct msc_env_host *host, const struct cJSON *config) {
    unsigned met = msc_dataset_has_labels(host->dataset) ? MSC_METRIC_NEEDS_LABELS : 0;
    const cJSON *command = cJSON_GetObjectItemCaseSensitive(config, "command");
    int n_indices = 0;
    *out = (struct msc_metrics){.command_is_maximised = cJSON_IsTrue(
                                    cJSON_GetObjectItemCaseSensitive(command, "maximise"))};
    met |= command && !cJSON_IsNull(command) ? MSC_METRIC_NEEDS_COMMAND : 0;
    for (const struct msc_metric_row *row = table; row->metric.name; row++) {
        bool is_asked =
            asks_for(config, row->metric.name) || asks_for_ratio(config, table, row->metric.name);
        unsigned lacking = row->needs & ~(is_asked ? met | MSC_METRIC_NEEDS_ASKING : met);
        if (is_asked && lacking != 0) {
            return fail_for(row, lacking);
        }
        if ((lacking & MSC_METRIC_NEEDS_ASKING) == 0) {
            choose_metric(out, row, lacking == 0 ? n_indices++ : -1);
        }
    }
    return MSC_OK;
}

bool msc_metrics_has(const struct msc_metrics *m, const char *name) {
    size_t i = 0;
    while (i < m->n && strcmp(m->rows[i]->metric.name, name) != 0) {
        i++;
    }
    return i < m->n;
}

// ---- In the space -----------------------------------------------------------------------------

static enum msc_status no_metric_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for metrics");
}

// Room for another term, in the arena.
static enum msc_status reserve_term(struct msc_metric_cost *cost) {
    if (cost->n_terms < cost->capacity) {
        return MSC_OK;
    }
    size_t capacity = cost->capacity > 0 ? 2 * cost->capacity : 16;
    struct msc_cost_term *terms = msc_arena_array(cost->arena, capacity, sizeof(terms[0]));
    if (!terms) {
        return no_metric_memory();
    }
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
    if (!factors) {
        return no_metric_memory();
    }
    for (size_t i = 0; i < n_factors; i++) {
        factors[i] = (struct msc_cost_factor){tasks[i], by_choice[i]};
    }
    MSC_TRY(reserve_term(cost));
    cost->terms[cost->n_terms++] = (struct msc_cost_term){scale, (uint32_t)n_factors, factors};
    return MSC_OK;
}

// Every scale and the constant divided by what the float model has.
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

// The exact metric whose row comes before and has this name.
static const struct msc_metric_cost *find_cost(const struct msc_metric_cost built[],
                                               const struct msc_metrics *m, const char *name) {
    size_t i = 0;
    while (strcmp(m->rows[i]->metric.name, name) != 0) {
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
    if (!metrics || !costs) {
        return no_metric_memory();
    }
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_row *row = m->rows[i];
        struct msc_metric_cost *cost = &built[i];
        int index = m->indices[i];
        if (index < 0) {
            continue;
        }
        cost->arena = arena;
        cost->reference = row->metric.is_exact || row->is_distance ? 0 : NAN;
        MSC_TRY(row->cost       ? row->cost(cost, of)
                : row->ratio_of ? build_ratio(cost, find_cost(built, m, row->ratio_of))
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

enum msc_status msc_metrics_before(double metrics[], const struct msc_metrics *m,
                                   const struct msc_env *env, const uint32_t choices[],
                                   const struct msc_edit *const edits[]) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->rows[i]->measure && m->indices[i] >= 0) {
            MSC_TRY(m->rows[i]->measure(&metrics[m->indices[i]], env, choices, edits));
        }
    }
    return MSC_OK;
}

bool msc_metrics_has_before(const struct msc_metrics *m) {
    for (size_t i = 0; i < m->n; i++) {
        if (m->rows[i]->measure && m->indices[i] >= 0) {
            return true;
        }
    }
    return false;
}

static double value_of_run(const struct msc_metrics *m, size_t i,
                           const struct msc_distill_run *run) {
    return m->rows[i]->of_run ? m->rows[i]->of_run(run) : run->metrics[m->in_run[i]];
}

void msc_metrics_after(double metrics[], const struct msc_metrics *m,
                       const struct msc_distill_run *run) {
    for (size_t i = 0; i < m->n; i++) {
        if (is_of_run(m->rows[i]) && m->indices[i] >= 0) {
            metrics[m->indices[i]] = value_of_run(m, i, run);
        }
    }
}

enum msc_status msc_metrics_add(struct cJSON *object, const struct msc_metrics *m,
                                const struct msc_distill_run *run) {
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_row *row = m->rows[i];
        // A sample's metric is NaN where the samples lack what it needs.
        if (row->of_run || (row->sample && !isnan(value_of_run(m, i, run)))) {
            MSC_TRY(msc_json_add_number(object, row->metric.name, value_of_run(m, i, run)));
        }
    }
    return MSC_OK;
}

enum msc_status msc_metrics_add_float(struct cJSON *object, const struct msc_metrics *m,
                                      const struct msc_distill_run *run) {
    for (size_t i = 0; i < m->n; i++) {
        const struct msc_metric_row *row = m->rows[i];
        double value = is_of_run(row) && !row->is_distance ? value_of_run(m, i, run) : NAN;
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
        if (is_of_run(m->rows[i]) && !m->rows[i]->is_distance && m->indices[i] >= 0) {
            return true;
        }
    }
    return false;
}
