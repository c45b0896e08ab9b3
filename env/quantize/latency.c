// Reads the table of latencies from text and builds the metric latency_us from it.
#include "env/quantize/latency.h"

#include "base/alloc.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- The table --------------------------------------------------------------------------------

// Reads a number of microseconds. It may be negative, because some entries are differences.
static enum msc_status read_number(double *out, const cJSON *item, const char *where) {
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) {
        return MSC_FAIL(MSC_E_FORMAT, "latencies: %s is not a number of microseconds", where);
    }
    *out = item->valuedouble;
    return MSC_OK;
}

static enum msc_status read_pair(double *first, double *second, const cJSON *object,
                                 const char *name) {
    const cJSON *pair = msc_json_get(object, name);
    if (cJSON_GetArraySize(pair) != 2) {
        return MSC_FAIL(MSC_E_FORMAT, "latencies: %s is missing, expected two times", name);
    }
    MSC_TRY(read_number(first, cJSON_GetArrayItem(pair, 0), name));
    return read_number(second, cJSON_GetArrayItem(pair, 1), name);
}

static enum msc_status read_source(struct msc_latency_table *t, const cJSON *json,
                                   struct msc_arena *arena) {
    const char *runtime, *version, *processor;
    int64_t n_threads;
    MSC_TRY(msc_json_get_text(&runtime, json, "runtime", "latencies"));
    MSC_TRY(msc_json_get_text(&version, json, "version", "latencies"));
    MSC_TRY(msc_json_get_text(&processor, json, "processor", "latencies"));
    MSC_TRY(msc_json_get_i64(&n_threads, json, "threads", "latencies"));
    t->of =
        msc_arena_printf(arena, "%s %s, %lld thread%s%s%s", runtime, version, (long long)n_threads,
                         n_threads == 1 ? "" : "s", processor[0] ? ", " : "", processor);
    return MSC_ALLOCATED(t->of);
}

// Reads the member "dynamic", which is there if a choice is dynamic: {"joints": {name: us},
// "tensors": {name: us}}.
static enum msc_status read_dynamic(struct msc_latency_table *t,
                                    const struct msc_latency_network *net, const cJSON *json) {
    const cJSON *joints = msc_json_get(json, "joints"), *tensors = msc_json_get(json, "tensors");
    for (int32_t i = 0; json && i < msc_graph_n_joints(net->graph); i++) {
        const char *name = msc_graph_joint(net->graph, i)->name;
        if (net->takes_dynamic[i]) {
            MSC_TRY(read_number(&t->dynamic_us[i], msc_json_get(joints, name), name));
        }
    }
    for (int32_t i = 0; json && i < net->sites->n_sites; i++) {
        const struct msc_site *s = &net->sites->sites[i];
        if (s->takes_dynamic) {
            MSC_TRY(read_number(&t->find_us[i], msc_json_get(tensors, s->name), s->name));
        }
    }
    return MSC_OK;
}

static enum msc_status read_table(struct msc_latency_table *t,
                                  const struct msc_latency_network *net, const cJSON *json,
                                  struct msc_arena *arena) {
    const cJSON *joints = msc_json_get(json, "joints");
    const cJSON *tensors = msc_json_get(json, "tensors");
    MSC_TRY(read_source(t, json, arena));
    MSC_TRY(read_number(&t->constant_us, msc_json_get(json, "constant_us"), "constant_us"));
    for (int32_t i = 0; i < msc_graph_n_joints(net->graph); i++) {
        if (net->group_of[i] == i) {
            MSC_TRY(read_pair(&t->float_us[i], &t->integer_us[i], joints,
                              msc_graph_joint(net->graph, i)->name));
        }
    }
    for (int32_t i = 0; i < net->sites->n_sites; i++) {
        const struct msc_site *s = &net->sites->sites[i];
        if (s->kind == MSC_SITE_ACTIVATION) {
            MSC_TRY(read_pair(&t->quantize_us[i], &t->dequantize_us[i], tensors, s->name));
        }
    }
    return read_dynamic(t, net, msc_json_get(json, "dynamic"));
}

enum msc_status msc_latency_table_read(struct msc_latency_table *out,
                                       const struct msc_latency_network *net, const char *text,
                                       size_t length, struct msc_arena *arena) {
    size_t n_joints = (size_t)msc_graph_n_joints(net->graph) + 1;
    size_t n_sites = (size_t)net->sites->n_sites + 1;
    cJSON *json = NULL;
    *out = (struct msc_latency_table){.text = msc_arena_strndup(arena, text, length)};
    out->float_us = msc_arena_array(arena, n_joints, sizeof(double));
    out->integer_us = msc_arena_array(arena, n_joints, sizeof(double));
    out->quantize_us = msc_arena_array(arena, n_sites, sizeof(double));
    out->dequantize_us = msc_arena_array(arena, n_sites, sizeof(double));
    out->dynamic_us = msc_arena_array(arena, n_joints, sizeof(double));
    out->find_us = msc_arena_array(arena, n_sites, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(out->text && out->float_us && out->integer_us && out->quantize_us &&
                          out->dequantize_us && out->dynamic_us && out->find_us));
    MSC_TRY(msc_json_parse(&json, out->text, length, "latencies"));
    enum msc_status status = read_table(out, net, json, arena);
    cJSON_Delete(json);
    return status;
}

// ---- The metric -------------------------------------------------------------------------------

// The kinds of values that a choice can give a site. "Bytes" are integers of at most 8 bits that
// are not quantised in groups and whose scale is known.
enum form { FORM_WEIGHT_BYTES, FORM_BYTES, FORM_OTHER, FORM_DYNAMIC, N_FORMS };

struct coster {
    struct msc_metric_cost *out;
    const struct msc_quantize_inputs *in;
    const struct msc_quantize_space *s;
    double *(*is_form)[N_FORMS]; // [n_tasks][form], 1 or 0 by choice; created on demand
    double (*alone)[N_FORMS];    // [n_tasks][form], scales of terms that depend on one task only
    uint32_t *tasks;             // [n_tasks], tasks of the current term
    const double **by_choice;    // [n_tasks], factors of these tasks
};

static bool is_form(const struct msc_quant *q, enum form form) {
    bool is_dynamic = q && q->is_dynamic;
    return form == FORM_DYNAMIC ? is_dynamic
           : form == FORM_OTHER ? q && !is_dynamic && !msc_latency_is_bytes(q)
                                : msc_latency_is_bytes(q);
}

static const struct msc_site *site_at(const struct coster *c, int32_t site) {
    return &msc_quantizer_sites(c->in->quantizer)->sites[site];
}

// The form that a condition asks of a site: bytes, or a dynamic activation if `is_dynamic`.
static enum form form_of(const struct coster *c, int32_t site, bool is_dynamic) {
    return site_at(c, site)->kind == MSC_SITE_WEIGHT ? FORM_WEIGHT_BYTES
           : is_dynamic                              ? FORM_DYNAMIC
                                                     : FORM_BYTES;
}

static enum msc_status choices_of_form(const double **out, struct coster *c, int32_t site,
                                       enum form form) {
    int32_t task = c->s->task_of_site[site];
    double **made = &c->is_form[task][form];
    uint32_t n = c->s->space.tasks[task].n_choices;
    *made = *made ? *made : msc_arena_array(c->out->arena, n, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(*made));
    for (uint32_t i = 0; i < n; i++) {
        int32_t choice = (int32_t)c->s->choices_of_task[task][i];
        (*made)[i] = is_form(msc_quantizer_quant(c->in->quantizer, site, choice), form);
    }
    *out = *made;
    return MSC_OK;
}

// The quantisation of a site without a task.
static const struct msc_quant *fixed_quant(const struct coster *c, int32_t site) {
    return msc_latency_fixed_quant(site_at(c, site), c->in->fixed);
}

// Adds a factor to the current term; two factors of the same task are multiplied into one.
static enum msc_status add_factor(struct coster *c, size_t *n, uint32_t task,
                                  const double *by_choice) {
    uint32_t n_choices = c->s->space.tasks[task].n_choices;
    size_t at = 0;
    while (at < *n && c->tasks[at] != task) {
        at++;
    }
    if (at == *n) {
        c->tasks[at] = task;
        c->by_choice[at] = by_choice;
        *n += 1;
        return MSC_OK;
    }
    if (c->by_choice[at] == by_choice) {
        return MSC_OK;
    }
    double *both = msc_arena_array(c->out->arena, n_choices, sizeof(both[0]));
    MSC_TRY(MSC_ALLOCATED(both));
    for (uint32_t i = 0; i < n_choices; i++) {
        both[i] = c->by_choice[at][i] * by_choice[i];
    }
    c->by_choice[at] = both;
    return MSC_OK;
}

// Adds a term that is `scale` if all sites of the set and the site `beside` (may be MSC_NO_ID) are
// bytes, else 0. With `is_dynamic`, activations must be dynamic instead.
static enum msc_status add_if_all(struct coster *c, double scale, const struct msc_site_set *set,
                                  int32_t beside, bool is_dynamic) {
    size_t n = 0;
    if (set->is_never || scale == 0) {
        return MSC_OK;
    }
    for (int32_t i = 0; i <= set->n; i++) {
        int32_t site = i < set->n ? set->sites[i] : beside;
        const double *by_choice;
        if (site == MSC_NO_ID) {
            continue;
        }
        enum form form = form_of(c, site, is_dynamic);
        if (c->s->task_of_site[site] == MSC_NO_ID) {
            if (!is_form(fixed_quant(c, site), form)) {
                return MSC_OK;
            }
            continue;
        }
        MSC_TRY(choices_of_form(&by_choice, c, site, form));
        MSC_TRY(add_factor(c, &n, (uint32_t)c->s->task_of_site[site], by_choice));
    }
    if (n == 0) {
        c->out->constant += scale;
        return MSC_OK;
    }
    return msc_metric_add_term(c->out, scale, n, c->tasks, c->by_choice);
}

// Adds a term that is `scale` if the site has this form, else 0. Terms of one task are collected in
// `alone`.
static void add_if_form(struct coster *c, double scale, int32_t site, enum form form) {
    int32_t task = c->s->task_of_site[site];
    if (task != MSC_NO_ID) {
        c->alone[task][form] += scale;
    } else if (is_form(fixed_quant(c, site), form)) {
        c->out->constant += scale;
    }
}

static enum msc_status add_site(struct coster *c, const struct msc_quantize_latency *l,
                                int32_t site) {
    double quantize = l->table.quantize_us[site], dequantize = l->table.dequantize_us[site];
    add_if_form(c, quantize + dequantize, site, FORM_BYTES);
    add_if_form(c, quantize + dequantize, site, FORM_OTHER);
    add_if_form(c, l->table.find_us[site], site, FORM_DYNAMIC);
    MSC_TRY(add_if_all(c, -quantize, &l->network.made[site], site, false));
    return add_if_all(c, -dequantize, &l->network.read[site], site, false);
}

static enum msc_status add_alone(struct coster *c) {
    for (int32_t site = 0; site < msc_quantizer_sites(c->in->quantizer)->n_sites; site++) {
        int32_t task = c->s->task_of_site[site];
        for (int form = 0; task != MSC_NO_ID && form < N_FORMS; form++) {
            double scale = c->alone[task][form];
            const double *by_choice;
            uint32_t its_task = (uint32_t)task;
            bool is_weight = site_at(c, site)->kind == MSC_SITE_WEIGHT;
            if (scale != 0 && !is_weight) {
                MSC_TRY(choices_of_form(&by_choice, c, site, (enum form)form));
                MSC_TRY(msc_metric_add_term(c->out, scale, 1, &its_task, &by_choice));
                c->alone[task][form] = 0; // another site may have the same task
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_quantize_cost_latency(struct msc_metric_cost *out, const void *of) {
    const struct msc_quantize_costing *costing = of;
    const struct msc_quantize_inputs *in = costing->in;
    const struct msc_quantize_space *s = costing->s;
    const struct msc_quantize_latency *l = in->latency;
    const struct msc_latency_network *net = &l->network;
    struct coster c = {.out = out, .in = in, .s = s};
    size_t n_tasks = s->space.n_tasks + 1;
    c.is_form = msc_arena_array(out->arena, n_tasks, sizeof(c.is_form[0]));
    c.alone = msc_arena_array(out->arena, n_tasks, sizeof(c.alone[0]));
    c.tasks = msc_arena_array(out->arena, n_tasks, sizeof(c.tasks[0]));
    c.by_choice = msc_arena_array(out->arena, n_tasks, sizeof(c.by_choice[0]));
    MSC_TRY(MSC_ALLOCATED(c.is_form && c.alone && c.tasks && c.by_choice));
    out->constant = out->reference = l->table.constant_us;
    for (int32_t i = 0; i < msc_graph_n_joints(net->graph); i++) {
        if (net->group_of[i] == i) {
            double gain = l->table.integer_us[i] - l->table.float_us[i];
            out->constant += l->table.float_us[i];
            out->reference += l->table.float_us[i];
            MSC_TRY(add_if_all(&c, gain, &net->needed[i], MSC_NO_ID, false));
        }
        if (net->takes_dynamic[i]) {
            double gain = l->table.dynamic_us[i] - l->table.float_us[i];
            MSC_TRY(add_if_all(&c, gain, &net->needed[i], MSC_NO_ID, true));
        }
    }
    for (int32_t i = 0; i < net->sites->n_sites; i++) {
        if (net->sites->sites[i].kind == MSC_SITE_ACTIVATION) {
            MSC_TRY(add_site(&c, l, i));
        }
    }
    return add_alone(&c);
}
