// Covariances of the pair model, and the tasks that have pair terms.
#include "agents/pair_model_internal.h"

#include "base/heap.h"

#include <math.h>
#include <string.h>

// ---- Tasks with pair terms --------------------------------------------------------------------

enum msc_status msc_pair_model_use_edges(struct msc_pair_model *m, struct msc_arena *arena,
                                         const uint32_t pairs[][2], size_t n) {
    const struct msc_space *space = m->bounds->space;
    size_t n_terms = 0;
    m->edges = msc_arena_array(arena, n + 1, sizeof *m->edges);
    m->first_uses = msc_arena_array(arena, space->n_tasks + 2, sizeof *m->first_uses);
    m->uses = msc_arena_array(arena, 2 * n + 1, sizeof *m->uses);
    MSC_TRY(MSC_ALLOCATED(m->edges && m->first_uses && m->uses));
    for (size_t i = 0; i < n; i++) {
        bool is_ordered = pairs[i][0] < pairs[i][1];
        struct msc_pair_edge edge = {pairs[i][!is_ordered], pairs[i][is_ordered], n_terms};
        size_t n_more = (size_t)space->tasks[edge.a].n_choices * space->tasks[edge.b].n_choices;
        if (n_terms + n_more > (size_t)MSC_PAIR_ENTRIES * MSC_PAIR_ENTRIES) {
            break;
        }
        n_terms += n_more;
        m->edges[m->n_edges++] = edge;
        m->first_uses[edge.a + 2]++;
        m->first_uses[edge.b + 2]++;
    }
    for (size_t t = 2; t < space->n_tasks + 2; t++) {
        m->first_uses[t] += m->first_uses[t - 1];
    }
    // first_uses[t + 1] is the place of the next use of task t, and ends at the first use
    // of task t + 1.
    for (size_t i = 0; i < m->n_edges; i++) {
        m->uses[m->first_uses[m->edges[i].a + 1]++] = (uint32_t)i;
        m->uses[m->first_uses[m->edges[i].b + 1]++] = (uint32_t)i;
    }
    return MSC_OK;
}

static bool has_greater_scale(const void *context, const void *a, const void *b) {
    const double *scales = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return scales[left] > scales[right] || (scales[left] == scales[right] && left < right);
}

void msc_pair__leave_out_pairs(struct msc_pair_model *m) {
    for (size_t p = 0; p < m->n_pair_entries; p++) {
        m->pair_places[m->pair_entries[p]] = -1;
    }
    m->n_pair_entries = 0;
    m->n_paired = 0;
    m->has_pairs = false;
}

static bool has_lower_index(const void *context, const void *a, const void *b) {
    (void)context;
    return *(const uint32_t *)a < *(const uint32_t *)b;
}

static void sort_by_index(uint32_t tasks[], size_t n) {
    uint32_t spare;
    const struct msc_heap heap = {.elements = tasks,
                                  .element_bytes = sizeof *tasks,
                                  .spare = &spare,
                                  .is_before = has_lower_index};
    msc_heap_sort(&heap, n);
}

// Gives the task's choices the next places.
static void add_paired(struct msc_pair_model *m, uint32_t task) {
    for (uint32_t c = 0; c < m->bounds->space->tasks[task].n_choices; c++) {
        size_t e = msc_exact_bounds_entry(m->bounds, task, c);
        m->pair_places[e] = (int32_t)m->n_pair_entries;
        m->pair_tasks[m->n_pair_entries] = task;
        m->pair_entries[m->n_pair_entries++] = (uint32_t)e;
    }
    m->paired[m->n_paired++] = task;
}

// Places and paired tasks are in the order of tasks.
void msc_pair__choose_pairs(struct msc_pair_model *m) {
    uint32_t spare;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        m->tasks[t] = (uint32_t)t;
    }
    const struct msc_heap heap = {.elements = m->tasks,
                                  .element_bytes = sizeof *m->tasks,
                                  .spare = &spare,
                                  .is_before = has_greater_scale,
                                  .context = m->task_scales};
    msc_pair__leave_out_pairs(m);
    m->has_pairs = true;
    if (m->is_near) {
        m->n_paired = m->bounds->space->n_tasks;
        memcpy(m->paired, m->tasks, m->n_paired * sizeof *m->paired);
        return;
    }
    msc_heap_sort(&heap, m->bounds->space->n_tasks);
    size_t n_taken = 0, n_entries = 0;
    while (n_taken < m->bounds->space->n_tasks &&
           n_entries + m->bounds->space->tasks[m->tasks[n_taken]].n_choices <= MSC_PAIR_ENTRIES) {
        n_entries += m->bounds->space->tasks[m->tasks[n_taken++]].n_choices;
    }
    sort_by_index(m->tasks, n_taken);
    for (size_t i = 0; i < n_taken; i++) {
        add_paired(m, m->tasks[i]);
    }
}

// ---- Covariances ------------------------------------------------------------------------------

void msc_pair__set_own(const struct msc_pair_model *m, const uint32_t x[]) {
    for (size_t p = 0; p < m->n_paired; p++) {
        uint32_t t = m->paired[p];
        size_t e = msc_exact_bounds_entry(m->bounds, t, x[t]);
        m->places[p] = (uint32_t)m->pair_places[e];
        m->own_choices[p] = x[t];
        m->own_roots[p] = m->roots[e];
    }
}

void msc_pair__set_column(struct msc_pair_model *m, size_t i, const uint32_t x[]) {
    for (size_t p = 0; p < m->n_paired; p++) {
        uint32_t t = m->paired[p];
        m->point_choices[p * MSC_PAIR_POINTS + i] = x[t];
        m->point_roots[p * MSC_PAIR_POINTS + i] =
            m->roots[msc_exact_bounds_entry(m->bounds, t, x[t])];
    }
}

bool msc_pair__set_unknown(struct msc_pair_model *m, const uint32_t x[]) {
    bool is_any = false;
    for (size_t t = 0; t < m->bounds->space->n_tasks; t++) {
        size_t e = msc_exact_bounds_entry(m->bounds, t, x[t]);
        m->unknown[t] = m->is_known[e] ? 0.0 : m->scales[e] * m->scales[e];
        is_any = is_any || m->unknown[t] > 0.0;
    }
    return is_any;
}

// Adds to `sums`, for each of MSC_PAIR_LANES points, the part of its covariance with point i that
// comes from shared choices.
static void add_shared(const struct msc_pair_model *m, size_t i, size_t first, double sums[]) {
    size_t n_tasks = m->bounds->space->n_tasks;
    const uint32_t *x = msc_pair__point(m, i), *z = msc_pair__point(m, first);
    for (size_t t = 0; t < n_tasks; t++) {
        const double added[] = {0.0, m->unknown[t]};
        for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
            sums[lane] += added[x[t] == z[lane * n_tasks + t]];
        }
    }
}

// One task's factor in the covariances of MSC_PAIR_LANES points, from point i on, with the point of
// msc_pair__set_own: the square roots of both scales, and the correlation unless the choices agree.
static void set_factors(const struct msc_pair_model *m, size_t p, size_t i, double out[]) {
    const double *roots = m->point_roots + p * MSC_PAIR_POINTS + i;
    const uint32_t *choices = m->point_choices + p * MSC_PAIR_POINTS + i;
    const double root = m->own_roots[p], other = root * m->correlation;
    for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
        out[lane] = roots[lane] * (choices[lane] == m->own_choices[p] ? root : other);
    }
}

// The sum of k_i k_j over all pairs of tasks is ((sum of k)^2 - sum of k^2) / 2.
static void covariances_of_all(const struct msc_pair_model *m, size_t i, double out[]) {
    double sums[MSC_PAIR_LANES] = {0.0}, squares[MSC_PAIR_LANES] = {0.0};
    for (size_t p = 0; p < m->n_paired; p++) {
        double factors[MSC_PAIR_LANES];
        set_factors(m, p, i, factors);
        for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
            sums[lane] += factors[lane];
            squares[lane] += factors[lane] * factors[lane];
        }
    }
    for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
        out[lane] = 0.5 * (sums[lane] * sums[lane] - squares[lane]);
    }
}

static void covariances_of_edges(const struct msc_pair_model *m, size_t i, double out[]) {
    for (size_t p = 0; p < m->n_paired; p++) {
        if (m->own_roots[p] > 0.0) {
            set_factors(m, p, i, m->lanes + p * MSC_PAIR_LANES);
        }
    }
    memset(out, 0, MSC_PAIR_LANES * sizeof *out);
    for (size_t k = 0; k < m->n_edges && m->n_paired > 0; k++) {
        if (!(m->own_roots[m->edges[k].a] > 0.0 && m->own_roots[m->edges[k].b] > 0.0)) {
            continue; // the factors are 0
        }
        const double *a = m->lanes + m->edges[k].a * MSC_PAIR_LANES;
        const double *b = m->lanes + m->edges[k].b * MSC_PAIR_LANES;
        for (size_t lane = 0; lane < MSC_PAIR_LANES; lane++) {
            out[lane] += a[lane] * b[lane];
        }
    }
}

void msc_pair__pair_covariances(const struct msc_pair_model *m, size_t i, double out[]) {
    (m->is_near ? covariances_of_edges : covariances_of_all)(m, i, out);
}

double msc_pair__pair_variance(const struct msc_pair_model *m) {
    double sum = 0.0, squares = 0.0, of_edges = 0.0;
    for (size_t p = 0; p < m->n_paired; p++) {
        double scale = m->own_roots[p] * m->own_roots[p];
        sum += scale;
        squares += scale * scale;
    }
    for (size_t k = 0; m->is_near && k < m->n_edges && m->n_paired > 0; k++) {
        double a = m->own_roots[m->edges[k].a], b = m->own_roots[m->edges[k].b];
        of_edges += a * a * b * b;
    }
    return m->is_near ? of_edges : 0.5 * (sum * sum - squares);
}

void msc_pair__set_covariances(struct msc_pair_model *m) {
    for (size_t i = m->n_covered; i < m->n_points; i++) {
        const uint32_t *x = msc_pair__point(m, i);
        double *alone = m->alone + i * MSC_PAIR_POINTS, *pairs = m->pairs + i * MSC_PAIR_POINTS;
        bool has_unknown = msc_pair__set_unknown(m, x);
        memset(alone, 0, (i + MSC_PAIR_LANES) / MSC_PAIR_LANES * MSC_PAIR_LANES * sizeof *alone);
        msc_pair__set_column(m, i, x);
        msc_pair__set_own(m, x);
        for (size_t k = 0; k <= i; k += MSC_PAIR_LANES) {
            if (has_unknown) {
                add_shared(m, i, k, alone + k);
            }
            msc_pair__pair_covariances(m, k, pairs + k);
        }
    }
    m->n_covered = m->n_points;
}
