#include "env/placement/place_table.h"

#include "base/shown.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOSSES_AT_ONCE = 64 };

enum msc_status msc_place_table_create(struct msc_place_table **out, size_t n_groups,
                                       size_t n_backends) {
    if (n_groups < 1 || n_groups > MSC_PLACE_MOST_GROUPS || n_backends < 1 ||
        n_backends > MSC_PLACE_MOST_BACKENDS) {
        return MSC_FAIL(MSC_E_INVALID,
                        "placement: %zu groups on %zu backends, expected 1 to %d groups on 1 to %d "
                        "backends",
                        n_groups, n_backends, MSC_PLACE_MOST_GROUPS, MSC_PLACE_MOST_BACKENDS);
    }
    struct msc_place_table *p = msc_alloc_zero(1, sizeof *p);
    MSC_TRY(MSC_ALLOCATED(p));
    size_t n_us = n_groups * n_groups * n_backends;
    p->n_groups = n_groups;
    p->n_backends = n_backends;
    p->n_variants = 1;
    p->groups = msc_arena_array(&p->arena, n_groups, sizeof p->groups[0]);
    p->backends = msc_arena_array(&p->arena, n_backends, sizeof p->backends[0]);
    p->us = msc_arena_array(&p->arena, n_us, sizeof p->us[0]);
    p->cut_us = msc_arena_array(&p->arena, n_groups * n_backends * n_backends, sizeof p->cut_us[0]);
    p->cut_bytes = msc_arena_array(&p->arena, n_groups, sizeof p->cut_bytes[0]);
    if (!p->groups || !p->backends || !p->us || !p->cut_us || !p->cut_bytes) {
        msc_place_table_close(p);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < n_us; i++) {
        p->us[i] = NAN;
    }
    *out = p;
    return MSC_OK;
}

enum msc_status msc_place_table_label(struct msc_place_table *p, size_t backend) {
    struct msc_place_backend *b = &p->backends[backend];
    const char *model = p->variants[b->variant].model;
    const char *slash = strrchr(model, '/');
    struct msc_str text = {0};
    if (b->variant == 0) {
        b->label = b->name;
        return MSC_OK;
    }
    msc_str_printf(&text, "%s ", b->name);
    msc_shown_append(&text, slash ? slash + 1 : model);
    b->label = msc_str_keep(&text, &p->arena);
    return MSC_ALLOCATED(b->label);
}

void msc_place_table_close(struct msc_place_table *p) {
    if (p) {
        msc_arena_finish(&p->arena);
        msc_free(p);
    }
}

// ---- Points -----------------------------------------------------------------------------------

size_t msc_place_table_end(const struct msc_place_table *p, const uint32_t choices[],
                           size_t first) {
    size_t last = first;
    while (last + 1 < p->n_groups && choices[last + 1] == choices[first]) {
        last++;
    }
    return last;
}

void msc_place_table_variants(uint32_t variants[], const struct msc_place_table *p,
                              const uint32_t choices[]) {
    for (size_t i = 0; i < p->n_groups; i++) {
        variants[i] = p->backends[choices[i]].variant;
    }
}

double msc_place_table_predict(const struct msc_place_table *p, const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t first = 0, last; first < p->n_groups; first = last + 1) {
        last = msc_place_table_end(p, choices, first);
        if (first > 0) {
            sum += *msc_place_table_cut(p, first, choices[first - 1], choices[first]);
        }
        sum += *msc_place_table_us(p, first, last, choices[first]);
    }
    return sum;
}

size_t msc_place_table_n_pieces(const struct msc_place_table *p, const uint32_t choices[]) {
    size_t n = 1;
    for (size_t i = 1; i < p->n_groups; i++) {
        n += choices[i] != choices[i - 1];
    }
    return n;
}

// ---- The dynamic program ----------------------------------------------------------------------

// The best points of groups 0 ... last that end with a piece on `backend`.
struct ends {
    double us[MSC_PLACE_MOST_GROUPS][MSC_PLACE_MOST_BACKENDS];
    uint8_t first[MSC_PLACE_MOST_GROUPS][MSC_PLACE_MOST_BACKENDS];  // of the last piece
    uint8_t before[MSC_PLACE_MOST_GROUPS][MSC_PLACE_MOST_BACKENDS]; // backend before it
};

// The cheapest way to get to a piece that begins with `first` on `backend`: the latency of all
// groups before it, with the price of the cut.
static double arrive(uint8_t *before, const struct ends *e, const struct msc_place_table *p,
                     size_t first, size_t backend) {
    double least = INFINITY;
    if (first == 0) {
        return 0.0;
    }
    for (size_t b = 0; b < p->n_backends; b++) {
        double us = e->us[first - 1][b] + *msc_place_table_cut(p, first, b, backend);
        if (b != backend && us < least) {
            least = us;
            *before = (uint8_t)b;
        }
    }
    return least;
}

// The first group that a piece on `backend` with this last group may have; last + 1: it may have
// none, as the group has another variant. `variants` NULL: any.
static size_t least_first(const struct msc_place_table *p, const uint32_t variants[], size_t last,
                          size_t backend) {
    size_t first = variants ? last + 1 : 0;
    while (first > 0 && variants[first - 1] == p->backends[backend].variant) {
        first--;
    }
    return first;
}

static void find_ends(struct ends *e, const struct msc_place_table *p, const uint32_t variants[]) {
    for (size_t last = 0; last < p->n_groups; last++) {
        for (size_t b = 0; b < p->n_backends; b++) {
            e->us[last][b] = INFINITY;
            for (size_t first = least_first(p, variants, last, b); first <= last; first++) {
                uint8_t before = 0;
                double us =
                    arrive(&before, e, p, first, b) + *msc_place_table_us(p, first, last, b);
                if (us < e->us[last][b]) { // never for NaN
                    e->us[last][b] = us;
                    e->first[last][b] = (uint8_t)first;
                    e->before[last][b] = before;
                }
            }
        }
    }
}

// The best point of a combination of variants; NULL: of all combinations.
static enum msc_status find_best(double *us, const struct msc_place_table *p,
                                 const uint32_t variants[], uint32_t choices[]) {
    struct ends *e = msc_alloc_zero(1, sizeof *e);
    MSC_TRY(MSC_ALLOCATED(e));
    find_ends(e, p, variants);
    size_t last = p->n_groups - 1, best = 0;
    for (size_t b = 1; b < p->n_backends; b++) {
        best = e->us[last][b] < e->us[last][best] ? b : best;
    }
    bool is_found = isfinite(e->us[last][best]);
    *us = e->us[last][best];
    for (size_t end = p->n_groups, b = best; is_found && end > 0;) {
        size_t first = e->first[end - 1][b], before = e->before[end - 1][b];
        for (size_t i = first; i < end; i++) {
            choices[i] = (uint32_t)b;
        }
        end = first;
        b = before;
    }
    msc_free(e);
    return is_found ? MSC_OK
                    : MSC_FAIL(MSC_E_NOT_FOUND, "placement: no backends run all groups of %s",
                               p->variants[0].model ? p->variants[0].model : "the network");
}

enum msc_status msc_place_table_best(double *us, const struct msc_place_table *p,
                                     uint32_t choices[]) {
    return find_best(us, p, NULL, choices);
}

// ---- A bound on the loss ----------------------------------------------------------------------

enum msc_status msc_place_table_add_loss(struct msc_place_table *p, const uint32_t variants[],
                                         double loss) {
    size_t n_bytes = p->n_groups * sizeof variants[0];
    if (p->n_losses % LOSSES_AT_ONCE == 0) {
        struct msc_place_loss *more =
            msc_arena_array(&p->arena, p->n_losses + LOSSES_AT_ONCE, sizeof *more);
        MSC_TRY(MSC_ALLOCATED(more));
        for (size_t i = 0; i < p->n_losses; i++) {
            more[i] = p->losses[i];
        }
        p->losses = more;
    }
    struct msc_place_loss *l = &p->losses[p->n_losses];
    l->variants = msc_arena_array(&p->arena, p->n_groups, sizeof variants[0]);
    MSC_TRY(MSC_ALLOCATED(l->variants));
    memcpy(l->variants, variants, n_bytes);
    l->loss = loss;
    p->n_losses++;
    return MSC_OK;
}

enum msc_status msc_place_table_loss(double *loss, struct msc_place_table *p,
                                     const struct msc_place_bound *bound,
                                     const uint32_t variants[]) {
    size_t n_others = 0;
    for (size_t i = 0; i < p->n_groups; i++) {
        n_others += variants[i] != 0;
    }
    *loss = n_others > 0 ? NAN : 0.0;
    for (size_t i = 0; i < p->n_losses && isnan(*loss); i++) {
        if (memcmp(p->losses[i].variants, variants, p->n_groups * sizeof variants[0]) == 0) {
            *loss = p->losses[i].loss;
        }
    }
    if (!isnan(*loss) || !bound->measure) {
        return MSC_OK;
    }
    MSC_TRY(bound->measure(loss, bound->payload, variants));
    return isnan(*loss) ? MSC_OK : msc_place_table_add_loss(p, variants, *loss);
}

// A combination of variants: digit i of `number`, to the base of their number, is that of group i.
struct combination {
    double us; // of its best point; INFINITY: none can run
    uint32_t number;
};

static void read_combination(uint32_t variants[], const struct msc_place_table *p,
                             uint32_t number) {
    for (size_t i = 0; i < p->n_groups; i++) {
        variants[i] = number % (uint32_t)p->n_variants;
        number /= (uint32_t)p->n_variants;
    }
}

static int compare_combinations(const void *a, const void *b) {
    const struct combination *x = a, *y = b;
    return x->us != y->us ? (x->us < y->us ? -1 : 1)
                          : (x->number > y->number) - (x->number < y->number);
}

// Visits combinations in the order of their latency. The last that can be needed is the network
// itself, whose loss is 0.
static enum msc_status visit_combinations(double *us, struct msc_place_table *p,
                                          const struct msc_place_bound *bound, uint32_t choices[],
                                          struct combination c[], size_t n) {
    uint32_t variants[MSC_PLACE_MOST_GROUPS];
    for (size_t i = 0; i < n; i++) {
        read_combination(variants, p, (uint32_t)i);
        enum msc_status status = find_best(us, p, variants, choices);
        MSC_TRY(status == MSC_E_NOT_FOUND ? MSC_OK : status);
        c[i] = (struct combination){.us = *us, .number = (uint32_t)i};
    }
    qsort(c, n, sizeof c[0], compare_combinations);
    for (size_t i = 0; i < n && isfinite(c[i].us); i++) {
        double loss;
        read_combination(variants, p, c[i].number);
        MSC_TRY(msc_place_table_loss(&loss, p, bound, variants));
        if (loss <= bound->most) { // not if it is NaN
            return find_best(us, p, variants, choices);
        }
    }
    return MSC_FAIL(MSC_E_NOT_FOUND,
                    "placement: nothing that backends run is known to have a loss of at most %g",
                    bound->most);
}

enum msc_status msc_place_count_combinations(size_t *n, size_t n_variants, size_t n_groups) {
    *n = 1;
    for (size_t i = 0; i < n_groups && *n <= MSC_PLACE_MOST_COMBINATIONS; i++) {
        *n *= n_variants;
    }
    return *n <= MSC_PLACE_MOST_COMBINATIONS
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "placement: %zu networks can be combined in more than %d ways in %zu "
                          "groups; measure with fewer groups or variants",
                          n_variants, MSC_PLACE_MOST_COMBINATIONS, n_groups);
}

enum msc_status msc_place_table_best_within(double *us, struct msc_place_table *p,
                                            const struct msc_place_bound *bound,
                                            uint32_t choices[]) {
    size_t n;
    if (isinf(bound->most) || p->n_variants == 1) {
        return msc_place_table_best(us, p, choices);
    }
    MSC_TRY(msc_place_count_combinations(&n, p->n_variants, p->n_groups));
    struct combination *c = msc_alloc_zero(n, sizeof *c);
    MSC_TRY(MSC_ALLOCATED(c));
    enum msc_status status = visit_combinations(us, p, bound, choices, c, n);
    msc_free(c);
    return status;
}
