// Fits the table of latencies to the times of the plans' kernels.
//
// The float time of a group comes from the profile of the float model, because there runtimes fuse
// most and keep their own layouts. Its integer time comes from the uniform plan. In mixed plans a
// group takes longer; the excess is added to the conversions next to it. The time of a conversion
// is its mean over the plans that have it. All conversions are then scaled by a common factor so
// that the mixed plans are fitted on average. Integer times are scaled so that the uniform plan is
// fitted exactly.
#include "env/quantize/latency_internal.h"

#include "base/alloc.h"
#include "base/json.h"
#include "tools/latency.h"

#include <math.h>
#include <string.h>

// Greatest factor on conversions; the least is its inverse. A factor beyond these limits means that
// a measurement was disturbed.
#define MOST_SCALED 2.0

// One kind of conversion.
struct conversions {
    double *seen[MSC_LATENCY_PLANS]; // [n_sites], times in each plan
    double *us;                      // [n_sites], fitted times
};

struct fit {
    const struct msc_latency_network *net;
    const struct msc_latency_plans *plans;
    const struct msc_profile_times *times;
    int32_t n_joints, n_sites;
    double *seen[MSC_LATENCY_PLANS]; // [n_joints], times of groups in each plan
    int32_t *first_read;             // [n_joints], a site that the group reads, or MSC_NO_ID
    int32_t *first_made;             // [n_joints], a site that the group writes, or MSC_NO_ID
    double constant_us;
    double *float_us, *integer_us; // [n_joints], fitted times of groups
    struct conversions quantize, dequantize;
    double *dynamic_us, *find_us;     // [n_joints], [n_sites], of the plan DYNAMIC
    double fitted[MSC_LATENCY_PLANS]; // the table's latency of each plan
};

static enum msc_status fit_allocate(struct fit *f, struct msc_arena *arena) {
    size_t n_joints = (size_t)f->n_joints + 1, n_sites = (size_t)f->n_sites + 1;
    f->first_read = msc_arena_array(arena, n_joints, sizeof(int32_t));
    f->first_made = msc_arena_array(arena, n_joints, sizeof(int32_t));
    f->float_us = msc_arena_array(arena, n_joints, sizeof(double));
    f->integer_us = msc_arena_array(arena, n_joints, sizeof(double));
    f->quantize.us = msc_arena_array(arena, n_sites, sizeof(double));
    f->dequantize.us = msc_arena_array(arena, n_sites, sizeof(double));
    f->dynamic_us = msc_arena_array(arena, n_joints, sizeof(double));
    f->find_us = msc_arena_array(arena, n_sites, sizeof(double));
    bool has_room = f->first_read && f->first_made && f->float_us && f->integer_us &&
                    f->quantize.us && f->dequantize.us && f->dynamic_us && f->find_us;
    for (int p = 0; p < MSC_LATENCY_PLANS; p++) {
        f->seen[p] = msc_arena_array(arena, n_joints, sizeof(double));
        f->quantize.seen[p] = msc_arena_array(arena, n_sites, sizeof(double));
        f->dequantize.seen[p] = msc_arena_array(arena, n_sites, sizeof(double));
        has_room = has_room && f->seen[p] && f->quantize.seen[p] && f->dequantize.seen[p];
    }
    return MSC_ALLOCATED(has_room);
}

static bool holds(const struct msc_site_set *set, const bool is_bytes[]) {
    bool all = !set->is_never;
    for (int32_t i = 0; i < set->n; i++) {
        all = all && is_bytes[set->sites[i]];
    }
    return all;
}

static bool is_activation(const struct fit *f, int32_t site) {
    return f->net->sites->sites[site].kind == MSC_SITE_ACTIVATION;
}

// Whether plan `p` converts the site for the groups that write it or for those that read it; `set`
// is the condition of these groups.
static bool is_converted(const struct fit *f, int p, int32_t site, const struct msc_site_set *set) {
    return is_activation(f, site) && f->plans->is_bytes[p][site] &&
           !holds(set, f->plans->is_bytes[p]);
}

// ---- Measured times ---------------------------------------------------------------------------

// Unexpected conversions count as part of the group that writes the tensor.
static void see_tensor(struct fit *f, int p, int32_t tensor) {
    const struct msc_graph *g = f->net->graph;
    double quantize = f->times[p].quantize_us[tensor],
           dequantize = f->times[p].dequantize_us[tensor];
    int32_t site = f->net->site_of_tensor[tensor];
    int32_t maker = f->net->group_of[msc_graph_producer(g, tensor)];
    if (site != MSC_NO_ID && is_converted(f, p, site, &f->net->made[site])) {
        f->quantize.seen[p][site] += quantize;
    } else {
        f->seen[p][maker] += quantize;
    }
    if (site != MSC_NO_ID && is_converted(f, p, site, &f->net->read[site])) {
        f->dequantize.seen[p][site] += dequantize;
    } else {
        f->seen[p][maker] += dequantize;
    }
}

static void find_first_sites(struct fit *f) {
    const struct msc_sites *sites = f->net->sites;
    for (int32_t i = 0; i < f->n_joints; i++) {
        f->first_read[i] = f->first_made[i] = MSC_NO_ID;
    }
    for (int32_t i = sites->n_slots - 1; i >= 0; i--) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->kind == MSC_SITE_ACTIVATION && slot->joint != MSC_NO_ID) {
            f->first_read[f->net->group_of[slot->joint]] = f->net->site_of_slot[i];
        }
    }
    for (int32_t i = f->n_sites - 1; i >= 0; i--) {
        if (is_activation(f, i) && f->net->maker[i] != MSC_NO_ID) {
            f->first_made[f->net->maker[i]] = i;
        }
    }
}

// Adds the excess time of a group in a mixed plan to a conversion next to it. A float group is
// compared with the float model; an integer group, whose layout the runtime may change, with the
// uniform plan.
static void see_excess(struct fit *f, int p, int32_t group) {
    int32_t made = f->first_made[group], read = f->first_read[group];
    if (holds(&f->net->needed[group], f->plans->is_bytes[p])) {
        double excess = f->seen[p][group] - f->seen[MSC_LATENCY_UNIFORM][group];
        if (made != MSC_NO_ID && is_converted(f, p, made, &f->net->read[made])) {
            f->dequantize.seen[p][made] += excess;
        } else if (read != MSC_NO_ID && is_converted(f, p, read, &f->net->made[read])) {
            f->quantize.seen[p][read] += excess;
        }
        return;
    }
    double excess = f->seen[p][group] - f->float_us[group];
    // The conversion to floats is fused with the group that reads them.
    if (read != MSC_NO_ID && is_converted(f, p, read, &f->net->read[read])) {
        f->dequantize.seen[p][read] += excess;
    } else if (made != MSC_NO_ID && is_converted(f, p, made, &f->net->made[made])) {
        f->quantize.seen[p][made] += excess;
    }
}

static void see_plan(struct fit *f, int p) {
    const struct msc_graph *g = f->net->graph;
    for (int32_t i = 0; i < f->n_joints; i++) {
        f->seen[p][f->net->group_of[i]] += f->times[p].compute_us[i];
    }
    for (int32_t t = 0; t < msc_graph_n_tensors(g); t++) {
        if (msc_graph_weight_of(g, t) == MSC_NO_ID) {
            see_tensor(f, p, t);
        }
    }
    for (int32_t i = 0; i < f->n_joints; i++) {
        if (p == MSC_LATENCY_FLOAT) {
            f->float_us[i] = f->seen[p][i];
        } else if (f->net->group_of[i] == i) {
            see_excess(f, p, i);
        }
    }
}

// ---- Conversions ------------------------------------------------------------------------------

// Whether the site is constant for the plan's lengths and therefore never converted.
static bool is_gone(const struct fit *f, const struct msc_plan *plan, int32_t site) {
    return plan->bound_slots[f->net->sites->sites[site].slots[0]] == MSC_NO_ID;
}

static double n_elements(const struct fit *f, const struct msc_plan *plan, int32_t site) {
    const struct msc_slot *slot =
        msc_quantize_bound_slot(plan, f->net->sites->sites[site].slots[0]);
    return (double)msc_tensor_n_elements(msc_graph_tensor(plan->graph, slot->tensor));
}

// Sets each conversion to its mean over the plans that have it. If no plan has the conversion, the
// median time per element of the other conversions is used.
static enum msc_status average(struct fit *f, struct conversions *c,
                               const struct msc_site_set *sets, const struct msc_plan *plan,
                               struct msc_arena *arena) {
    double *rates = msc_arena_array(arena, (size_t)f->n_sites + 1, sizeof(double));
    int32_t *n_seen = msc_arena_array(arena, (size_t)f->n_sites + 1, sizeof(int32_t));
    size_t n_rates = 0;
    MSC_TRY(MSC_ALLOCATED(rates && n_seen));
    for (int32_t i = 0; i < f->n_sites; i++) {
        double sum = 0;
        for (int p = MSC_LATENCY_UNIFORM; p < MSC_LATENCY_DYNAMIC; p++) {
            if (!is_gone(f, plan, i) && is_converted(f, p, i, &sets[i])) {
                sum += c->seen[p][i];
                n_seen[i]++;
            }
        }
        if (n_seen[i] > 0) {
            c->us[i] = sum > 0 ? sum / n_seen[i] : 0;
            rates[n_rates++] = c->us[i] / fmax(n_elements(f, plan, i), 1);
        }
    }
    double rate = n_rates > 0 ? msc_quartiles_of(rates, n_rates).median : 0;
    for (int32_t i = 0; i < f->n_sites; i++) {
        if (is_activation(f, i) && n_seen[i] == 0 && !is_gone(f, plan, i)) {
            c->us[i] = rate * fmax(n_elements(f, plan, i), 1);
        }
    }
    return MSC_OK;
}

// ---- Fitting ----------------------------------------------------------------------------------

// The parts of a plan's latency by the table: conversions, groups in integers, and the rest.
struct parts {
    double conversions, integers, floats;
};

static struct parts parts_of(const struct fit *f, int p) {
    struct parts sum = {.floats = f->constant_us};
    for (int32_t i = 0; i < f->n_joints; i++) {
        bool is_integer = holds(&f->net->needed[i], f->plans->is_bytes[p]);
        if (f->net->group_of[i] == i) {
            *(is_integer ? &sum.integers : &sum.floats) +=
                is_integer ? f->integer_us[i] : f->float_us[i];
        }
    }
    for (int32_t i = 0; i < f->n_sites; i++) {
        sum.conversions += is_converted(f, p, i, &f->net->made[i]) ? f->quantize.us[i] : 0;
        sum.conversions += is_converted(f, p, i, &f->net->read[i]) ? f->dequantize.us[i] : 0;
    }
    return sum;
}

static void scale_conversions(struct fit *f) {
    double wanted = 0, there = 0;
    for (int p = MSC_LATENCY_EVEN; p < MSC_LATENCY_DYNAMIC; p++) {
        struct parts parts = parts_of(f, p);
        wanted += f->times[p].us - parts.integers - parts.floats;
        there += parts.conversions;
    }
    double scale = there > 0 ? wanted / there : 1;
    scale = fmin(fmax(scale, 1 / MOST_SCALED), MOST_SCALED);
    for (int32_t i = 0; i < f->n_sites; i++) {
        f->quantize.us[i] *= scale;
        f->dequantize.us[i] *= scale;
    }
}

static void scale_integers(struct fit *f) {
    struct parts parts = parts_of(f, MSC_LATENCY_UNIFORM);
    double wanted = f->times[MSC_LATENCY_UNIFORM].us - parts.conversions - parts.floats;
    double scale = parts.integers > 0 && wanted > 0 ? wanted / parts.integers : 1;
    for (int32_t i = 0; i < f->n_joints; i++) {
        f->integer_us[i] *= scale;
    }
    for (int p = 0; p < MSC_LATENCY_DYNAMIC; p++) {
        parts = parts_of(f, p);
        f->fitted[p] = parts.conversions + parts.integers + parts.floats;
    }
}

// Fits the times of groups with a dynamic activation to the plan DYNAMIC, if it was profiled. The
// other groups of this plan take their float time; what the plan takes beyond is divided among the
// dynamic ones in proportion to their own times.
static void fit_dynamic(struct fit *f) {
    const struct msc_profile_times *times = &f->times[MSC_LATENCY_DYNAMIC];
    double dynamics = 0, floats = f->constant_us;
    if (f->plans->n <= MSC_LATENCY_DYNAMIC) {
        return;
    }
    for (int32_t i = 0; i < f->n_joints; i++) {
        int32_t group = f->net->group_of[i];
        f->dynamic_us[group] += f->net->takes_dynamic[group] ? times->compute_us[i] : 0;
    }
    for (int32_t t = 0; t < msc_graph_n_tensors(f->net->graph); t++) {
        int32_t site = f->net->site_of_tensor[t];
        if (site != MSC_NO_ID && f->plans->is_dynamic[site]) {
            f->find_us[site] += times->quantize_us[t] + times->dequantize_us[t];
        }
    }
    for (int32_t i = 0; i < f->n_joints; i++) {
        bool is_group = f->net->group_of[i] == i, is_dynamic = is_group && f->net->takes_dynamic[i];
        dynamics += is_dynamic ? f->dynamic_us[i] : 0;
        floats += is_group && !is_dynamic ? f->float_us[i] : 0;
    }
    for (int32_t i = 0; i < f->n_sites; i++) {
        dynamics += f->find_us[i];
    }
    double scale = dynamics > 0 ? (times->us - floats) / dynamics : 1;
    scale = fmin(fmax(scale, 1 / MOST_SCALED), MOST_SCALED);
    for (int32_t i = 0; i < f->n_joints; i++) {
        f->dynamic_us[i] *= scale;
    }
    for (int32_t i = 0; i < f->n_sites; i++) {
        f->find_us[i] *= scale;
    }
    f->fitted[MSC_LATENCY_DYNAMIC] = floats + scale * dynamics;
}

static enum msc_status fit_table(struct fit *f, const struct msc_plan *plan,
                                 struct msc_arena *arena) {
    MSC_TRY(fit_allocate(f, arena));
    find_first_sites(f);
    for (int p = 0; p < MSC_LATENCY_DYNAMIC; p++) {
        see_plan(f, p);
    }
    f->constant_us = f->times[MSC_LATENCY_FLOAT].other_us;
    for (int32_t i = 0; i < f->n_joints; i++) {
        bool is_integer = holds(&f->net->needed[i], f->plans->is_bytes[MSC_LATENCY_UNIFORM]);
        f->integer_us[i] = is_integer ? f->seen[MSC_LATENCY_UNIFORM][i] : f->float_us[i];
    }
    MSC_TRY(average(f, &f->quantize, f->net->made, plan, arena));
    MSC_TRY(average(f, &f->dequantize, f->net->read, plan, arena));
    scale_conversions(f);
    scale_integers(f);
    fit_dynamic(f);
    return MSC_OK;
}

// ---- The text ---------------------------------------------------------------------------------

static enum msc_status add_pair(cJSON *object, const char *name, double first, double second) {
    cJSON *pair = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, name, pair));
    MSC_TRY(msc_json_push(pair, cJSON_CreateNumber(first)));
    return msc_json_push(pair, cJSON_CreateNumber(second));
}

// Adds the measured and the fitted latency of each plan.
static enum msc_status add_plans(cJSON *json, const struct fit *f) {
    static const char *const names[] = {"float", "uniform", "even", "odd", "joined", "dynamic"};
    cJSON *plans = cJSON_CreateObject();
    MSC_TRY(msc_json_add(json, "plans", plans));
    for (int p = 0; p < f->plans->n; p++) {
        MSC_TRY(add_pair(plans, names[p], f->times[p].us, f->fitted[p]));
    }
    return MSC_OK;
}

static enum msc_status add_dynamic(cJSON *json, const struct fit *f) {
    cJSON *dynamic, *joints, *tensors;
    if (f->plans->n <= MSC_LATENCY_DYNAMIC) {
        return MSC_OK;
    }
    dynamic = cJSON_CreateObject();
    MSC_TRY(msc_json_add(json, "dynamic", dynamic));
    joints = cJSON_CreateObject();
    MSC_TRY(msc_json_add(dynamic, "joints", joints));
    tensors = cJSON_CreateObject();
    MSC_TRY(msc_json_add(dynamic, "tensors", tensors));
    for (int32_t i = 0; i < f->n_joints; i++) {
        const char *name = msc_graph_joint(f->net->graph, i)->name;
        MSC_TRY(f->net->takes_dynamic[i] ? msc_json_add_number(joints, name, f->dynamic_us[i])
                                         : MSC_OK);
    }
    for (int32_t i = 0; i < f->n_sites; i++) {
        const struct msc_site *s = &f->net->sites->sites[i];
        MSC_TRY(s->takes_dynamic ? msc_json_add_number(tensors, s->name, f->find_us[i]) : MSC_OK);
    }
    return MSC_OK;
}

static enum msc_status fit_to_json(cJSON *json, const struct fit *f,
                                   const struct msc_latency_source *source) {
    cJSON *joints = cJSON_CreateObject();
    MSC_TRY(msc_json_add(json, "joints", joints));
    cJSON *tensors = cJSON_CreateObject();
    MSC_TRY(msc_json_add(json, "tensors", tensors));
    MSC_TRY(msc_json_add_text(json, "runtime", source->runtime));
    MSC_TRY(msc_json_add_text(json, "version", source->version));
    MSC_TRY(msc_json_add_text(json, "processor", source->processor));
    MSC_TRY(msc_json_add_number(json, "threads", MSC_LATENCY_THREADS));
    MSC_TRY(add_plans(json, f));
    MSC_TRY(msc_json_add_number(json, "constant_us", f->constant_us));
    for (int32_t i = 0; i < f->n_joints; i++) {
        if (f->net->group_of[i] == i) {
            MSC_TRY(add_pair(joints, msc_graph_joint(f->net->graph, i)->name, f->float_us[i],
                             f->integer_us[i]));
        }
    }
    for (int32_t i = 0; i < f->n_sites; i++) {
        if (is_activation(f, i)) {
            MSC_TRY(add_pair(tensors, f->net->sites->sites[i].name, f->quantize.us[i],
                             f->dequantize.us[i]));
        }
    }
    return add_dynamic(json, f);
}

enum msc_status msc_latency__fit(struct msc_str *text, const struct msc_latency_source *source,
                                 const struct msc_latency_plans *p,
                                 const struct msc_profile_times times[],
                                 const struct msc_latency_job *job, struct msc_arena *arena) {
    struct fit f = {.net = p->net,
                    .plans = p,
                    .times = times,
                    .n_joints = msc_graph_n_joints(p->net->graph),
                    .n_sites = p->net->sites->n_sites};
    MSC_TRY(fit_table(&f, job->plan, arena));
    msc_log(job->host->log, MSC_LOG_INFO,
            "latency of %s %s: float model %.0f us, uniform plan %.0f us; three mixed plans take "
            "%.0f, %.0f, %.0f us, predicted by the latency table %.0f, %.0f, %.0f us",
            source->runtime, source->version, times[MSC_LATENCY_FLOAT].us,
            times[MSC_LATENCY_UNIFORM].us, times[MSC_LATENCY_EVEN].us, times[MSC_LATENCY_ODD].us,
            times[MSC_LATENCY_JOINED].us, f.fitted[MSC_LATENCY_EVEN], f.fitted[MSC_LATENCY_ODD],
            f.fitted[MSC_LATENCY_JOINED]);
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = MSC_ALLOCATED(json);
    if (status == MSC_OK) {
        status = fit_to_json(json, &f, source);
    }
    if (status == MSC_OK) {
        msc_json_write(text, json);
        status = msc_str_status(text);
    }
    cJSON_Delete(json);
    return status;
}
