// The ways to compute a step that give the same bits, which are its variants (kernels/backend.h).
//
// The units of integers give equal sums. A product of our own computes each window by itself, so
// the number of windows between which it changes the block of channels changes no bit, either.
// Routines of floats may add in another order than our own products do: no way replaces one by the
// other.
#include "base/alloc.h"
#include "kernels/cpu/cpu_gemm.h"

#include <stdio.h>
#include <string.h>

#define SIMILAR 1.5 // distance of work, such as twice the rows; beyond it the rule is as good
#define SECOND_LEVEL (96 * 1024) // bytes of windows that stay in most second-level caches

static const struct msc_cpu_gemm_way float_ways[] = {
    {"direct", MSC_CPU_GEMM_FLOAT_INDIRECT, 0},
    {"direct by 96 KiB", MSC_CPU_GEMM_FLOAT_INDIRECT, SECOND_LEVEL},
};
static const struct msc_cpu_gemm_way integer_ways[] = {
    {"direct", MSC_CPU_GEMM_INDIRECT, 0},
    {"direct by 96 KiB", MSC_CPU_GEMM_INDIRECT, SECOND_LEVEL},
    {"winograd", MSC_CPU_GEMM_WINOGRAD, 0},
    {"library", MSC_CPU_GEMM_INT8, 0},
    {"floats", MSC_CPU_GEMM_INTEGER, 0},
};
enum {
    N_FLOAT_WAYS = sizeof(float_ways) / sizeof(float_ways[0]),
    N_INTEGER_WAYS = sizeof(integer_ways) / sizeof(integer_ways[0]),
};
_Static_assert((int)N_FLOAT_WAYS <= (int)MSC_CPU_GEMM_WAYS &&
                   (int)N_INTEGER_WAYS <= (int)MSC_CPU_GEMM_WAYS,
               "too many ways");

// ---- Offers -----------------------------------------------------------------------------------

static bool is_possible(const struct msc_cpu_gemm *k, const struct msc_cpu_gemm_way *way) {
    bool has_blocks = way->unit == MSC_CPU_GEMM_FLOAT_INDIRECT || k->indirect != k->backend->tiles;
    switch (way->unit) {
    case MSC_CPU_GEMM_FLOAT_INDIRECT:
        return k->float_indirect != NULL;
    case MSC_CPU_GEMM_INDIRECT:
        return k->indirect && (way->block == 0 || has_blocks);
    case MSC_CPU_GEMM_WINOGRAD:
        return k->winograd != NULL;
    case MSC_CPU_GEMM_INT8:
        return msc_routine_isa().has_int8;
    default:
        return true;
    }
}

static enum msc_cpu_gemm_unit unit_by_rule(const struct msc_cpu_gemm *k) {
    if (k->winograd && msc_cpu_gemm_prefers_winograd(k)) {
        return MSC_CPU_GEMM_WINOGRAD;
    }
    if (k->indirect) {
        return MSC_CPU_GEMM_INDIRECT;
    }
    return msc_routine_isa().has_int8 ? MSC_CPU_GEMM_INT8 : MSC_CPU_GEMM_INTEGER;
}

static bool has_integer_ways(const struct msc_cpu_gemm *k) {
    return !k->is_depthwise && k->desc.kind != MSC_GEMM_CONV_TRANSPOSE &&
           k->backend->base.options.allow_int8;
}

static void offer(struct msc_cpu_gemm_ways *w, const struct msc_cpu_gemm *k,
                  const struct msc_cpu_gemm_way list[], int n) {
    for (int i = 0; i < n; i++) {
        if (is_possible(k, &list[i])) {
            w->list[w->n++] = &list[i];
        }
    }
}

// ---- Work -------------------------------------------------------------------------------------

// "int8", "int8 3x3", "int8 3x3/2", "int8 g4 3x3"
static void name_kind(struct msc_work *work, const struct msc_gemm_desc *d, bool is_integer) {
    char window[MSC_VARIANT_BYTES] = "", groups[24] = "";
    int n_spatial = d->kind == MSC_GEMM_LINEAR ? 0 : d->n_spatial, n = 0;
    bool is_point = true;
    for (int i = 0; i < n_spatial; i++) {
        is_point = is_point && d->kernel[i] == 1 && d->strides[i] == 1;
        n += snprintf(window + n, sizeof(window) - (size_t)n, "%s%d", i > 0 ? "x" : " ",
                      (int)(d->kernel[i] % 100));
    }
    if (n_spatial > 0 && d->strides[0] != 1) {
        snprintf(window + n, sizeof(window) - (size_t)n, "/%d", (int)(d->strides[0] % 100));
    }
    if (d->groups > 1) {
        snprintf(groups, sizeof(groups), " g%d", (int)(d->groups % 10000));
    }
    snprintf(work->kind, sizeof(work->kind), "%s%s%.12s", is_integer ? "int8" : "float32", groups,
             is_point ? "" : window);
}

static struct msc_work work_of(const struct msc_cpu_gemm *k, bool is_integer) {
    const struct msc_gemm_desc *d = &k->desc;
    int64_t positions = d->kind == MSC_GEMM_LINEAR ? 1 : msc_dims_product(d->n_spatial, d->out);
    int64_t depth = msc_array_n_elements(k->weight) / k->channels;
    struct msc_work work = {.rows = (uint64_t)(d->batch * positions),
                            .cols = (uint64_t)k->channels,
                            .depth = (uint64_t)depth};
    name_kind(&work, d, is_integer);
    return work;
}

// ---- Choices ----------------------------------------------------------------------------------

static int find_way(const struct msc_cpu_gemm_ways *w, const char *name) {
    for (int i = 0; i < w->n; i++) {
        if (strcmp(w->list[i]->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static void init_ways(struct msc_cpu_gemm_ways *w, const struct msc_cpu_gemm *k, bool is_integer) {
    enum msc_cpu_gemm_unit unit = is_integer ? unit_by_rule(k) : MSC_CPU_GEMM_FLOAT_INDIRECT;
    while (w->by_rule < w->n && w->list[w->by_rule]->unit != unit) {
        w->by_rule++;
    }
    w->work = work_of(k, is_integer);
    const struct msc_kept_choice *choice = msc_choices_find(&k->backend->kept, &w->work, SIMILAR);
    w->kept = choice ? find_way(w, choice->variant) : -1;
    w->chosen = w->kept >= 0 ? w->kept : w->by_rule;
}

enum msc_status msc_cpu_gemm_create_ways(struct msc_cpu_gemm *k) {
    k->ways = msc_alloc_zero(2, sizeof(k->ways[0]));
    MSC_TRY(MSC_ALLOCATED(k->ways));
    offer(&k->ways[0], k, float_ways, N_FLOAT_WAYS);
    if (has_integer_ways(k)) {
        offer(&k->ways[1], k, integer_ways, N_INTEGER_WAYS);
    }
    for (int i = 0; i < 2; i++) {
        if (k->ways[i].n > 0) {
            init_ways(&k->ways[i], k, i == 1);
        }
        atomic_init(&k->ways[i].was_used, false);
    }
    return MSC_OK;
}

const struct msc_cpu_gemm_way *msc_cpu_gemm_way(const struct msc_cpu_gemm *k, bool is_integer) {
    struct msc_cpu_gemm_ways *w = &k->ways[is_integer];
    if (w->n == 0) {
        return NULL;
    }
    atomic_store_explicit(&w->was_used, true, memory_order_relaxed);
    return w->list[w->chosen];
}

// The ways of the calls that ran: those of integers, if any call computed integers.
static struct msc_cpu_gemm_ways *used_ways(const struct msc_cpu_gemm *k) {
    for (int i = 1; i >= 0; i--) {
        if (k->ways[i].n > 0 && atomic_load_explicit(&k->ways[i].was_used, memory_order_relaxed)) {
            return &k->ways[i];
        }
    }
    return NULL;
}

bool msc_cpu_gemm_variants(const void *kernel, struct msc_variants *out) {
    const struct msc_cpu_gemm_ways *w = used_ways(kernel);
    if (!w) {
        return false;
    }
    *out =
        (struct msc_variants){.work = w->work, .n = w->n, .by_rule = w->by_rule, .kept = w->kept};
    for (int i = 0; i < w->n; i++) {
        snprintf(out->names[i], sizeof(out->names[i]), "%s", w->list[i]->name);
    }
    return true;
}

void msc_cpu_gemm_choose(void *kernel, int variant) {
    struct msc_cpu_gemm_ways *w = used_ways(kernel);
    if (w) {
        w->chosen = variant >= 0 ? variant : w->kept >= 0 ? w->kept : w->by_rule;
    }
}
