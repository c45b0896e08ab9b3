#include "env/placement/place_table.h"

#include <math.h>

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

void msc_place_table_close(struct msc_place_table *p) {
    if (p) {
        msc_arena_finish(&p->arena);
        msc_free(p);
    }
}

// ---- Points -----------------------------------------------------------------------------------

double msc_place_table_predict(const struct msc_place_table *p, const uint32_t choices[]) {
    double sum = 0.0;
    for (size_t first = 0, last; first < p->n_groups; first = last + 1) {
        last = first;
        while (last + 1 < p->n_groups && choices[last + 1] == choices[first]) {
            last++;
        }
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

static void find_ends(struct ends *e, const struct msc_place_table *p) {
    for (size_t last = 0; last < p->n_groups; last++) {
        for (size_t b = 0; b < p->n_backends; b++) {
            e->us[last][b] = INFINITY;
        }
        for (size_t first = 0; first <= last; first++) {
            for (size_t b = 0; b < p->n_backends; b++) {
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

enum msc_status msc_place_table_best(double *us, const struct msc_place_table *p,
                                     uint32_t choices[]) {
    struct ends *e = msc_alloc_zero(1, sizeof *e);
    MSC_TRY(MSC_ALLOCATED(e));
    find_ends(e, p);
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
                               p->model ? p->model : "the network");
}
