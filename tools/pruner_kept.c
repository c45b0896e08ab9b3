// The pruner's cache: second moments of consumers (tools/moment_file.h) and orders of groups,
// stored as they are computed before the first trial.
#include "base/str.h"
#include "tools/moment_file.h"
#include "tools/pruner_internal.h"

#include <string.h>

#define OF_PRUNER "channels/"

// A cache error only disables the cache, since everything can be recomputed. Only MSC_E_NOMEM is
// returned.
static enum msc_status do_without(struct msc_pruner_kept *k, enum msc_status why) {
    if (why != MSC_OK && why != MSC_E_NOMEM) {
        msc_log(k->log, MSC_LOG_WARNING, "%s; pruning data is no longer cached",
                msc_status_message());
        k->kept = NULL;
        return MSC_OK;
    }
    return why;
}

enum msc_status msc_pruner__recall_moment(bool *found, struct msc_pruner_kept *k,
                                          const struct msc_pruner *p, struct msc_consumer *c) {
    *found = false;
    if (!k->kept) {
        return MSC_OK;
    }
    enum msc_status status =
        msc_moment_load(&c->moment, k->kept, OF_PRUNER, c->slots[0],
                        msc_tensor_n_elements(msc_graph_tensor(p->g, c->tensor)));
    *found = status == MSC_OK;
    return status == MSC_E_NOT_FOUND ? MSC_OK : do_without(k, status);
}

enum msc_status msc_pruner__keep_moment(struct msc_pruner_kept *k, const struct msc_consumer *c) {
    return k->kept ? do_without(k, msc_moment_save(k->kept, OF_PRUNER, c->slots[0], &c->moment))
                   : MSC_OK;
}

// ---- Orders -----------------------------------------------------------------------------------

static enum msc_status name_order(struct msc_str *out, int32_t group,
                                  enum msc_criterion criterion) {
    msc_str_printf(out, "order/%d/%d", (int)group, (int)criterion);
    return msc_str_status(out);
}

// Is the array an order of n units?
static bool is_order(const struct msc_array *array, int32_t n, bool is_there[]) {
    bool fits =
        msc_array_dtype(array) == MSC_DTYPE_I32 && msc_array_n_elements(array) == (int64_t)n;
    for (int32_t i = 0; fits && i < n; i++) {
        int64_t unit = msc_array_get_i64(array, i);
        fits = unit >= 0 && unit < n && !is_there[unit];
        if (fits) {
            is_there[unit] = true;
        }
    }
    return fits;
}

static enum msc_status take_order(bool *found, struct msc_pruner *p, int32_t group,
                                  enum msc_criterion criterion, const struct msc_array *array) {
    int32_t n = p->channels.groups[group].n_units;
    bool *is_there = msc_alloc_zero((size_t)n + 1, sizeof(is_there[0]));
    double *places = msc_alloc_zero((size_t)n + 1, sizeof(places[0]));
    enum msc_status status = MSC_ALLOCATED(is_there && places);
    if (status == MSC_OK && is_order(array, n, is_there)) {
        for (int32_t i = 0; i < n; i++) {
            places[msc_array_get_i64(array, i)] = i;
        }
        status = msc_pruner_rank(p, group, criterion, places);
        *found = status == MSC_OK;
    }
    msc_free(places);
    msc_free(is_there);
    return status;
}

enum msc_status msc_pruner_recall_order(bool *found, struct msc_pruner *p, int32_t group,
                                        enum msc_criterion criterion, struct msc_pruner_kept *k) {
    struct msc_str name = {0};
    struct msc_array *array = NULL;
    *found = false;
    if (!k->kept) {
        return MSC_OK;
    }
    enum msc_status status = name_order(&name, group, criterion);
    if (status == MSC_OK) {
        status = msc_array_log_read(&array, k->kept, msc_str_text(&name));
    }
    if (status == MSC_OK) {
        status = take_order(found, p, group, criterion, array);
        msc_array_release(array);
    }
    msc_str_finish(&name);
    return status == MSC_E_NOT_FOUND ? MSC_OK : do_without(k, status);
}

enum msc_status msc_pruner_keep_order(struct msc_pruner_kept *k, const struct msc_pruner *p,
                                      int32_t group, enum msc_criterion criterion) {
    struct msc_str name = {0};
    struct msc_array *array = NULL;
    int64_t n = p->channels.groups[group].n_units;
    if (!k->kept) {
        return MSC_OK;
    }
    enum msc_status status = name_order(&name, group, criterion);
    if (status == MSC_OK) {
        status =
            msc_array_create_from(&array, MSC_DTYPE_I32, 1, &n, p->groups[group].orders[criterion]);
    }
    if (status == MSC_OK) {
        status = msc_array_log_add(k->kept, msc_str_text(&name), array);
        msc_array_release(array);
    }
    msc_str_finish(&name);
    return do_without(k, status);
}
