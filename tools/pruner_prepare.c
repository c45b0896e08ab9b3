// Preparation before the first trial: second moments and orders, measured, cached, saved and
// loaded.
#include "base/cancel.h"
#include "base/str.h"
#include "tools/pruner_internal.h"

#include <string.h>

// ---- Second moments ---------------------------------------------------------------------------

static bool makes_sparse_by_moments(const struct msc_pruner_options *o) {
    bool does = false;
    for (size_t i = 0; i < o->n_choices; i++) {
        enum msc_criterion criterion = o->choices[i].criterion;
        does = does || (o->choices[i].is_sparse &&
                        (criterion == MSC_CRITERION_ENERGY || criterion == MSC_CRITERION_HESSIAN));
    }
    return does;
}

// Are moments needed in trials, not only for ranking?
static bool keeps_moments(const struct msc_pruner *p) {
    return p->options->repairs || p->options->keeps_moments || makes_sparse_by_moments(p->options);
}

static bool needs_moments(const struct msc_pruner *p) {
    return keeps_moments(p) || msc_pruner_uses(p, MSC_CRITERION_ENERGY) ||
           msc_pruner_uses(p, MSC_CRITERION_HESSIAN);
}

static bool is_concerned(const struct msc_pruner *p, const struct msc_consumer *c) {
    bool is_cut = false;
    for (int32_t i = 0; i < c->n_groups; i++) {
        is_cut = is_cut || msc_pruner_is_cut(p, c->groups[i]);
    }
    return is_cut && c->is_weight;
}

// Joins the moments of all uses of a weight. If a use has no moment, the weight has none.
static enum msc_status join_moments(struct msc_moment *out, struct msc_moment uses[], int32_t n) {
    *out = uses[0];
    uses[0] = (struct msc_moment){0};
    for (int32_t i = 1; i < n; i++) {
        bool is_added;
        MSC_TRY(msc_moment_add(&is_added, out, &uses[i]));
        if (!is_added) {
            msc_moment_finish(out);
        }
    }
    return MSC_OK;
}

static enum msc_status measure_consumer(struct msc_consumer *c, struct msc_evaluator *ev,
                                        const struct msc_moment_options *o) {
    struct msc_moment *uses = msc_alloc_zero((size_t)c->n_slots, sizeof(uses[0]));
    enum msc_status status = MSC_ALLOCATED(uses);
    for (int32_t done = 0; status == MSC_OK && done < c->n_slots;) {
        size_t n = 0;
        status = msc_moments_measure(uses + done, &n, c->slots + done, (size_t)(c->n_slots - done),
                                     ev, o);
        done += (int32_t)n;
    }
    if (status == MSC_OK) {
        status = join_moments(&c->moment, uses, c->n_slots);
    }
    for (int32_t i = 0; uses && i < c->n_slots; i++) {
        msc_moment_finish(&uses[i]);
    }
    msc_free(uses);
    return status;
}

static enum msc_status measure_shared(const struct msc_pruner *p, struct msc_consumer *c,
                                      struct msc_evaluator *ev, const struct msc_moment_options *o,
                                      const struct msc_pruner_preparation *how) {
    bool is_kept;
    MSC_TRY(msc_pruner__recall_moment(&is_kept, how->kept, p, c));
    if (is_kept) {
        return MSC_OK;
    }
    MSC_TRY(measure_consumer(c, ev, o));
    return msc_pruner__keep_moment(how->kept, c);
}

// Measures the consumers that have a single use, as many per pass as fit in memory.
static enum msc_status measure_single(struct msc_pruner *p, struct msc_evaluator *ev,
                                      const struct msc_moment_options *o,
                                      const struct msc_pruner_preparation *how,
                                      const bool is_left_out[]) {
    struct msc_arena arena = {0};
    size_t n = 0, done = 0, n_all = (size_t)p->n_consumers + 1;
    struct msc_moment *moments = msc_arena_array(&arena, n_all, sizeof(moments[0]));
    int32_t *slots = msc_arena_array(&arena, n_all, sizeof(slots[0]));
    int32_t *consumers = msc_arena_array(&arena, n_all, sizeof(consumers[0]));
    enum msc_status status = MSC_ALLOCATED(moments && slots && consumers);
    for (int32_t i = 0; status == MSC_OK && i < p->n_consumers; i++) {
        struct msc_consumer *c = &p->consumers[i];
        bool is_due = is_concerned(p, c) && c->n_slots == 1 && !is_left_out[i], is_kept = false;
        status = is_due ? msc_pruner__recall_moment(&is_kept, how->kept, p, c) : MSC_OK;
        if (is_due && !is_kept) {
            consumers[n] = i;
            slots[n++] = c->slots[0];
        }
    }
    while (status == MSC_OK && done < n) {
        size_t n_now = 0;
        status = msc_cancel_soon(how->cancel) ? MSC_FAIL(MSC_E_CANCELLED, "cancelled") : MSC_OK;
        if (status == MSC_OK) {
            status = msc_moments_measure(moments + done, &n_now, slots + done, n - done, ev, o);
        }
        for (size_t i = 0; status == MSC_OK && i < n_now; i++) {
            struct msc_consumer *c = &p->consumers[consumers[done + i]];
            c->moment = moments[done + i];
            status = msc_pruner__keep_moment(how->kept, c);
        }
        done += n_now;
    }
    msc_arena_finish(&arena);
    return status;
}

// Leaves out the largest moments until the rest fits in memory.
static void leave_out(bool is_left_out[], const struct msc_pruner *p, uint64_t most_bytes,
                      const struct msc_log *log) {
    uint64_t total = 0;
    for (;;) {
        int32_t greatest = MSC_NO_ID;
        uint64_t most = 0;
        total = 0;
        for (int32_t i = 0; i < p->n_consumers; i++) {
            const struct msc_consumer *c = &p->consumers[i];
            const struct msc_tensor *t = msc_graph_tensor(p->g, c->tensor);
            if (!is_concerned(p, c) || is_left_out[i] || !t->data) {
                continue;
            }
            int32_t axis = p->sites.slots[c->slots[0]].channel_axis;
            int64_t n_rows = axis >= 0 ? t->dims[axis] : 1;
            uint64_t n = (uint64_t)(msc_array_n_elements(t->data) / n_rows);
            greatest = n > most ? i : greatest;
            most = n > most ? n : most;
            total += 4 * n * n;
        }
        if (total <= most_bytes || greatest == MSC_NO_ID) {
            return;
        }
        is_left_out[greatest] = true;
        msc_log(
            log, MSC_LOG_WARNING,
            "%s is not repaired, because the second moments of its inputs do not fit in memory; "
            "raise --memory",
            msc_graph_tensor(p->g, p->consumers[greatest].tensor)->name);
    }
}

static enum msc_status measure_moments(struct msc_pruner *p, struct msc_evaluator *ev,
                                       const struct msc_pruner_preparation *how) {
    struct msc_moment_options o = MSC_MOMENT_OPTIONS_INIT;
    bool *is_left_out = msc_alloc_zero((size_t)p->n_consumers + 1, sizeof(is_left_out[0]));
    MSC_TRY(MSC_ALLOCATED(is_left_out));
    o.n_rows = p->options->n_rows;
    o.memory_bytes = p->memory_bytes;
    o.n_threads = how->n_threads;
    leave_out(is_left_out, p, p->memory_bytes, how->log);
    enum msc_status status = measure_single(p, ev, &o, how, is_left_out);
    for (int32_t i = 0; status == MSC_OK && i < p->n_consumers; i++) {
        struct msc_consumer *c = &p->consumers[i];
        if (is_concerned(p, c) && c->n_slots > 1 && !is_left_out[i]) {
            status = measure_shared(p, c, ev, &o, how);
        }
    }
    msc_free(is_left_out);
    return status;
}

// ---- Orders -----------------------------------------------------------------------------------

static bool is_ranked_here(const struct msc_pruner *p, int criterion) {
    return criterion != MSC_CRITERION_LOSS && msc_pruner_uses(p, (enum msc_criterion)criterion);
}

// Reads either all orders of a group from the cache or none, since they are computed together.
static enum msc_status recall_orders(bool *are_there, struct msc_pruner *p, int32_t group,
                                     struct msc_pruner_kept *k) {
    *are_there = true;
    for (int i = 0; *are_there && i < MSC_N_CRITERIA; i++) {
        if (is_ranked_here(p, i)) {
            MSC_TRY(msc_pruner_recall_order(are_there, p, group, (enum msc_criterion)i, k));
        }
    }
    return MSC_OK;
}

static enum msc_status keep_orders(const struct msc_pruner *p, int32_t group,
                                   struct msc_pruner_kept *k) {
    for (int i = 0; i < MSC_N_CRITERIA; i++) {
        if (is_ranked_here(p, i)) {
            MSC_TRY(msc_pruner_keep_order(k, p, group, (enum msc_criterion)i));
        }
    }
    return MSC_OK;
}

// Only one thread at a time may use the cache file.
static enum msc_status rank_or_recall(struct msc_pruner *p, int32_t group,
                                      struct msc_pruner_kept *k) {
    bool are_there = false;
    enum msc_status status;
#pragma omp critical
    status = recall_orders(&are_there, p, group, k);
    if (status != MSC_OK || are_there) {
        return status;
    }
    MSC_TRY(msc_pruner__rank_group(p, group));
#pragma omp critical
    status = keep_orders(p, group, k);
    return status;
}

// Messages are local to the thread that failed, so the message is set again here.
static enum msc_status rank_groups(struct msc_pruner *p, const struct msc_pruner_preparation *how) {
    int worst = MSC_OK;
    // Allocates the orders first, because only one thread may use the arena.
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        for (int i = 0; i < MSC_N_CRITERIA; i++) {
            size_t n = (size_t)p->channels.groups[g].n_units;
            if (msc_pruner_is_cut(p, g) && msc_pruner_uses(p, (enum msc_criterion)i)) {
                int32_t *order = msc_arena_array(&p->arena, n + 1, sizeof(order[0]));
                p->groups[g].orders[i] = order;
                worst = order ? worst : MSC_E_NOMEM;
            }
        }
    }
    if (worst != MSC_OK) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
#pragma omp parallel for num_threads(how->n_threads) schedule(dynamic) reduction(min : worst)
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        bool is_due = msc_pruner_is_cut(p, g) && !msc_cancel_soon(how->cancel);
        int status = is_due ? rank_or_recall(p, g, how->kept) : MSC_OK;
        worst = status < worst ? status : worst;
    }
    if (msc_cancel_soon(how->cancel)) {
        return MSC_FAIL(MSC_E_CANCELLED, "cancelled");
    }
    return worst == MSC_OK ? MSC_OK
           : worst == MSC_E_INVALID
               ? MSC_FAIL(MSC_E_INVALID, "the second moments of weights' inputs are not finite; "
                                         "check the dataset and the model for NaN and infinity")
               : MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

enum msc_status msc_pruner_prepare(struct msc_pruner *p, struct msc_evaluator *ev,
                                   const struct msc_pruner_preparation *preparation) {
    struct msc_pruner_kept none = {.kept = NULL};
    struct msc_pruner_preparation how = *preparation;
    how.kept = how.kept ? how.kept : &none;
    MSC_TRY(needs_moments(p) ? measure_moments(p, ev, &how) : MSC_OK);
    return rank_groups(p, &how);
}

// ---- Files ------------------------------------------------------------------------------------

static enum msc_status add_array(struct msc_array_list *list, struct msc_str *name,
                                 enum msc_dtype dtype, int n_dims, const int64_t dims[],
                                 const void *data) {
    struct msc_array *array;
    MSC_TRY(msc_str_status(name));
    MSC_TRY(msc_array_create_from(&array, dtype, n_dims, dims, data));
    enum msc_status status = msc_array_list_add(list, msc_str_text(name), array);
    msc_array_release(array);
    return status;
}

static void name_order(struct msc_str *name, const struct msc_pruner *p, int32_t group,
                       int criterion) {
    msc_str_clear(name);
    msc_str_printf(name, "order/%s/%s", msc_criterion_name((enum msc_criterion)criterion),
                   p->channels.groups[group].name);
}

static void name_moment(struct msc_str *name, const struct msc_pruner *p,
                        const struct msc_consumer *c, const char *what) {
    msc_str_clear(name);
    msc_str_printf(name, "%s/%s", what, msc_graph_tensor(p->g, c->tensor)->name);
}

static enum msc_status save_orders(const struct msc_pruner *p, struct msc_array_list *list,
                                   struct msc_str *name) {
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        int64_t n = p->channels.groups[g].n_units;
        for (int i = 0; i < MSC_N_CRITERIA; i++) {
            if (p->groups[g].orders[i]) {
                name_order(name, p, g, i);
                MSC_TRY(add_array(list, name, MSC_DTYPE_I32, 1, &n, p->groups[g].orders[i]));
            }
        }
    }
    return MSC_OK;
}

static enum msc_status save_moments(const struct msc_pruner *p, struct msc_array_list *list,
                                    struct msc_str *name) {
    for (int32_t i = 0; i < p->n_consumers; i++) {
        const struct msc_consumer *c = &p->consumers[i];
        const struct msc_moment *m = &c->moment;
        const int64_t dims[] = {m->n_groups, m->n_columns, m->n_columns};
        if (m->n_groups > 0 && keeps_moments(p)) {
            name_moment(name, p, c, "moments");
            MSC_TRY(add_array(list, name, MSC_DTYPE_F32, 3, dims, m->h));
            name_moment(name, p, c, "means");
            MSC_TRY(add_array(list, name, MSC_DTYPE_F64, 2, dims, m->means));
        }
    }
    return MSC_OK;
}

enum msc_status msc_pruner_save(const struct msc_pruner *p, struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = save_orders(p, list, &name);
    if (status == MSC_OK) {
        status = save_moments(p, list, &name);
    }
    msc_str_finish(&name);
    return status;
}

static enum msc_status load_order(struct msc_pruner *p, const struct msc_array_list *list,
                                  int32_t group, int criterion, struct msc_str *name) {
    int32_t n = p->channels.groups[group].n_units;
    name_order(name, p, group, criterion);
    const struct msc_array *array = msc_array_list_find(list, msc_str_text(name));
    double *places = msc_alloc_zero((size_t)n, sizeof(places[0]));
    bool *is_there = msc_alloc_zero((size_t)n, sizeof(is_there[0]));
    bool fits = array && msc_array_dtype(array) == MSC_DTYPE_I32 &&
                msc_array_n_elements(array) == n && places && is_there;
    for (int32_t i = 0; fits && i < n; i++) {
        int64_t unit = msc_array_get_i64(array, i);
        fits = unit >= 0 && unit < n && !is_there[unit];
        if (fits) {
            is_there[unit] = true;
            places[unit] = i;
        }
    }
    enum msc_status status = !places || !is_there ? MSC_FAIL(MSC_E_NOMEM, "out of memory")
                             : fits
                                 ? msc_pruner_rank(p, group, (enum msc_criterion)criterion, places)
                                 : MSC_FAIL(MSC_E_STATE, "expected an order of %d units in %s",
                                            (int)n, msc_str_text(name));
    msc_free(is_there);
    msc_free(places);
    return status;
}

static enum msc_status load_moment(struct msc_pruner *p, const struct msc_array_list *list,
                                   struct msc_consumer *c, struct msc_str *name) {
    struct msc_moment *m = &c->moment;
    name_moment(name, p, c, "moments");
    const struct msc_array *h = msc_array_list_find(list, msc_str_text(name));
    name_moment(name, p, c, "means");
    const struct msc_array *means = msc_array_list_find(list, msc_str_text(name));
    if (!h && !means) {
        return MSC_OK; // the consumer has no moment
    }
    int64_t n_elements = msc_tensor_n_elements(msc_graph_tensor(p->g, c->tensor));
    bool fits = h && means && msc_array_dtype(h) == MSC_DTYPE_F32 && msc_array_n_dims(h) == 3 &&
                msc_array_dtype(means) == MSC_DTYPE_F64 && msc_array_n_dims(means) == 2 &&
                msc_array_dim(h, 0) == msc_array_dim(means, 0) &&
                msc_array_dim(h, 1) == msc_array_dim(means, 1) &&
                msc_array_dim(h, 2) == msc_array_dim(means, 1) && msc_array_n_elements(means) > 0;
    int64_t groups = fits ? msc_array_dim(h, 0) : 1, n = fits ? msc_array_dim(h, 1) : 1;
    if (!fits || n_elements % n != 0 || n_elements / n % groups != 0) {
        return MSC_FAIL(MSC_E_STATE, "no second moments that fit weight %s",
                        msc_graph_tensor(p->g, c->tensor)->name);
    }
    m->h = msc_alloc(msc_array_n_bytes(h));
    m->means = msc_alloc(msc_array_n_bytes(means));
    if (!m->h || !m->means) {
        msc_moment_finish(m);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    memcpy(m->h, msc_array_data(h), msc_array_n_bytes(h));
    memcpy(m->means, msc_array_data(means), msc_array_n_bytes(means));
    m->n_groups = groups;
    m->n_columns = n;
    return MSC_OK;
}

enum msc_status msc_pruner_load(struct msc_pruner *p, const struct msc_array_list *list) {
    struct msc_str name = {0};
    enum msc_status status = MSC_OK;
    for (int32_t g = 0; g < p->channels.n_groups; g++) {
        for (int i = 0; i < MSC_N_CRITERIA; i++) {
            if (msc_pruner_is_cut(p, g) && msc_pruner_uses(p, (enum msc_criterion)i)) {
                MSC_TRY_OUT(load_order(p, list, g, i, &name));
            }
        }
    }
    for (int32_t i = 0; keeps_moments(p) && i < p->n_consumers; i++) {
        MSC_TRY_OUT(load_moment(p, list, &p->consumers[i], &name));
    }
out:
    msc_str_finish(&name);
    return status;
}
