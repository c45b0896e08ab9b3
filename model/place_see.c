// Measures pieces in their place: networks are divided into chains of pieces, and each piece is
// timed between its neighbours, with the caches and the threads as these leave them.
#include "model/place_internal.h"

#include <math.h>
#include <stdio.h>

// A point and whole networks decide, and their chains are few. So they get more rounds for each
// round of a tiling, and two copies: the latency of a copy depends on where in memory it happens to
// lie.
enum {
    MORE_ROUNDS = 4,
    MORE_COPIES = 2,
};

struct msc_place_seen {
    size_t n_groups, n_backends;
    // [n_groups, n_groups, n_backends, n_backends] mean latency of the groups first ... last on a
    // backend after a piece on another (the same: also for the first piece), and of how many.
    double *us;
    uint32_t *counts;
    bool *is_tried; // [n_groups, n_groups]
    double *bytes;  // [n_groups] that pass from a group to the next
};

static size_t run_index(const struct msc_place_seen *s, size_t first, size_t last) {
    return first * s->n_groups + last;
}

static size_t seen_index(const struct msc_place_seen *s, size_t first, size_t last, size_t backend,
                         size_t before) {
    return (run_index(s, first, last) * s->n_backends + backend) * s->n_backends + before;
}

static enum msc_status write_run(struct msc_runtime_piece *out, struct msc_place_measure *m,
                                 size_t variant, size_t first, size_t last, const char *kind) {
    const struct msc_place_runs runs = {.networks = m->networks, .folder = m->scratch.path};
    MSC_TRY(msc_place_write_run(out, &runs, variant, first, last, kind, &m->arena));
    out->backend = m->backends[0];
    return MSC_OK;
}

enum msc_status msc_place__begin(struct msc_place_measure *m, const char *kind) {
    size_t n = m->n_groups, n_seen = n * n * m->n_backends * m->n_backends;
    struct msc_place_seen *s = msc_arena_array(&m->arena, 1, sizeof *s);
    m->singles = msc_arena_array(&m->arena, m->n_variants * n, sizeof m->singles[0]);
    MSC_TRY(MSC_ALLOCATED(s && m->singles));
    *s = (struct msc_place_seen){.n_groups = n, .n_backends = m->n_backends};
    s->us = msc_arena_array(&m->arena, n_seen, sizeof s->us[0]);
    s->counts = msc_arena_array(&m->arena, n_seen, sizeof s->counts[0]);
    s->is_tried = msc_arena_array(&m->arena, n * n, sizeof s->is_tried[0]);
    s->bytes = msc_arena_array(&m->arena, n, sizeof s->bytes[0]);
    MSC_TRY(MSC_ALLOCATED(s->us && s->counts && s->is_tried && s->bytes));
    m->seen = s;
    for (size_t i = 0; i < m->n_variants * n; i++) {
        MSC_TRY(write_run(&m->singles[i], m, i / n, i % n, i % n, kind));
    }
    return MSC_OK;
}

// ---- Chains -----------------------------------------------------------------------------------

// Chains of one tiling, each in every copy, and copies of the reference after them. All memory is
// here.
struct request {
    struct msc_place_measure *m;
    const struct msc_place_tiling *t;
    int64_t n_rounds;
    size_t n_copies;
    struct msc_arena arena;
    size_t n_chains;                  // in all copies
    uint32_t *choices;                // [n_chains, t->n] backends
    struct msc_runtime_piece *pieces; // [n_chains, t->n]
    struct msc_runtime_part *parts;   // [n_chains, t->n]
    struct msc_runtime_chain *chains; // [n_chains + n_copies]
    struct msc_runtime_piece references[MORE_COPIES];
    struct msc_latency latency;
};

static enum msc_status request_init(struct request *r, size_t n_different) {
    const struct msc_place_measure *m = r->m;
    size_t n_chains = n_different * r->n_copies;
    size_t n = n_chains * r->t->n, n_rounds = (size_t)r->n_rounds;
    r->n_chains = n_chains;
    r->choices = msc_arena_array(&r->arena, n, sizeof r->choices[0]);
    r->pieces = msc_arena_array(&r->arena, n, sizeof r->pieces[0]);
    r->parts = msc_arena_array(&r->arena, n, sizeof r->parts[0]);
    r->chains = msc_arena_array(&r->arena, n_chains + r->n_copies, sizeof r->chains[0]);
    MSC_TRY(MSC_ALLOCATED(r->choices && r->pieces && r->parts && r->chains));
    for (size_t i = 0; i < n; i++) {
        r->parts[i].us = msc_arena_array(&r->arena, n_rounds, sizeof(double));
        MSC_TRY(MSC_ALLOCATED(r->parts[i].us));
    }
    for (size_t c = 0; c < n_chains; c++) {
        r->chains[c] =
            (struct msc_runtime_chain){.pieces = &r->pieces[c * r->t->n],
                                       .n_pieces = r->t->n,
                                       .parts = &r->parts[c * r->t->n],
                                       .most_error = msc_place__most_error(m->n_variants - 1)};
    }
    for (size_t i = 0; i < r->n_copies; i++) {
        r->references[i] = m->reference;
        r->references[i].copy = (int)i;
        r->chains[n_chains + i] =
            (struct msc_runtime_chain){.pieces = &r->references[i], .n_pieces = 1};
    }
    return MSC_OK;
}

// The variant of a backend; backends are ordered by variant.
static size_t variant_of(const struct msc_place_measure *m, size_t backend) {
    return backend / (m->n_backends / m->n_variants);
}

// Writes the models of the tiles and measures the chains of `choices`.
static enum msc_status request_run(struct request *r) {
    struct msc_place_measure *m = r->m;
    for (size_t i = 0; i < r->t->n; i++) {
        struct msc_runtime_piece pieces[MSC_PLACE_MOST_VARIANTS] = {0};
        size_t first = r->t->firsts[i], last = r->t->firsts[i + 1] - 1;
        for (size_t c = 0; c < r->n_chains; c++) {
            size_t k = c * r->t->n + i, variant = variant_of(m, r->choices[k]);
            struct msc_runtime_piece *piece = &pieces[variant];
            if (first == last) {
                *piece = m->singles[variant * m->n_groups + first];
            } else if (!piece->model) {
                MSC_TRY(write_run(piece, m, variant, first, last, "run"));
            }
            r->pieces[k] = *piece;
            r->pieces[k].backend = m->backends[r->choices[k]];
            r->pieces[k].copy = (int)(c * r->n_copies / r->n_chains);
        }
    }
    struct msc_runtime_chains job = msc_place__job(m->o, &m->arena);
    job.n_rounds = r->n_rounds;
    job.values = m->singles;
    job.n_values = m->n_groups;
    job.others = m->backends;
    job.n_others = m->n_backends;
    job.chains = r->chains;
    job.n_chains = r->n_chains + (m->reference.model ? r->n_copies : 0);
    return msc_runtime_chains(&r->latency, m->runtime, &job);
}

static void log_missing(const struct msc_place_measure *m, const struct msc_runtime_part *part,
                        const struct msc_runtime_piece *piece) {
    if (part->error <= MSC_PLACE_MOST_ERROR) {
        msc_log(m->o->log, MSC_LOG_DEBUG, "placement: %s", part->missing);
        return;
    }
    msc_log(m->o->log, MSC_LOG_WARNING,
            "placement: %s%s%s: its error is %.2g of the values, so it takes no part there",
            part->missing ? "" : piece->backend, part->missing ? "" : " computes ",
            part->missing ? part->missing : piece->model, part->error);
}

// The mean time of the copies of the reference in a round; 0: there is none.
static double reference_us(const struct request *r, size_t round) {
    double sum = 0.0;
    for (size_t i = 0; r->m->reference.model && i < r->n_copies; i++) {
        size_t chain = r->n_chains + i;
        if (r->chains[chain].missing) {
            return 0.0;
        }
        sum += r->latency.us[chain * r->latency.n_rounds + round];
    }
    return sum / (double)r->n_copies;
}

// The latency of a piece: the median over the rounds of its share of the reference's time in the
// same round, as other load of the machine disturbs both. NaN: it was left out.
static double part_us(struct request *r, size_t chain, size_t tile) {
    size_t k = chain * r->t->n + tile;
    const struct msc_runtime_part *part = &r->parts[k];
    if (part->missing || part->error > msc_place__most_error(variant_of(r->m, r->choices[k]))) {
        log_missing(r->m, part, &r->pieces[k]);
        return NAN;
    }
    for (size_t i = 0; i < r->latency.n_rounds; i++) {
        double whole = reference_us(r, i);
        part->us[i] *= whole > 0.0 ? r->m->reference_us / whole : 1.0;
    }
    return msc_quartiles_of(part->us, r->latency.n_rounds).median;
}

// The tile that ran before this one in a chain, in which pieces that were refused are left out; the
// tile itself: none did.
static size_t tile_before(const struct msc_runtime_part parts[], size_t tile) {
    size_t before = tile;
    while (before > 0 && parts[before - 1].missing) {
        before--;
    }
    return before > 0 ? before - 1 : tile;
}

static void note(struct request *r, size_t chain) {
    struct msc_place_seen *s = r->m->seen;
    const uint32_t *choices = &r->choices[chain * r->t->n];
    const struct msc_runtime_part *parts = &r->parts[chain * r->t->n];
    for (size_t i = 0; i < r->t->n; i++) {
        size_t first = r->t->firsts[i], last = r->t->firsts[i + 1] - 1;
        size_t at = seen_index(s, first, last, choices[i], choices[tile_before(parts, i)]);
        double us = part_us(r, chain, i);
        if (!isnan(us)) {
            s->us[at] += (us - s->us[at]) / ++s->counts[at];
            s->bytes[last] = parts[i].bytes;
        }
        s->is_tried[run_index(s, first, last)] = true;
    }
}

static void request_finish(struct request *r) {
    for (size_t i = 0; r->pieces && i < r->n_chains * r->t->n; i++) {
        size_t tile = i % r->t->n;
        if (r->pieces[i].model && r->t->firsts[tile + 1] - r->t->firsts[tile] > 1 &&
            r->pieces[i].model != r->m->reference.model) {
            (void)remove(r->pieces[i].model);
        }
    }
    msc_latency_finish(&r->latency);
    msc_arena_finish(&r->arena);
}

// Backends of chains in which each piece is on each backend, after each backend: from a piece to
// the next, the number of the backend grows by the same step.
static void rotate(uint32_t choices[], size_t n_tiles, size_t n_chains, size_t n_different,
                   size_t k) {
    for (size_t c = 0; c < n_chains; c++) {
        size_t step = c % n_different / k;
        for (size_t i = 0; i < n_tiles; i++) {
            choices[c * n_tiles + i] = (uint32_t)((c % k + i * step) % k);
        }
    }
}

static enum msc_status see(struct request *r) {
    size_t k = r->m->n_backends;
    size_t n = r->t->n > 1 ? k * k : k;
    MSC_TRY(request_init(r, n));
    rotate(r->choices, r->t->n, r->n_chains, n, k);
    MSC_TRY(request_run(r));
    for (size_t c = 0; c < r->n_chains; c++) {
        note(r, c);
    }
    return MSC_OK;
}

enum msc_status msc_place__see(struct msc_place_measure *m, const struct msc_place_tiling *t) {
    bool is_whole = t->n == 1;
    struct request r = {.m = m,
                        .t = t,
                        .n_rounds = (is_whole ? MORE_ROUNDS : 1) * m->o->n_rounds,
                        .n_copies = is_whole ? MORE_COPIES : 1};
    enum msc_status status = see(&r);
    request_finish(&r);
    return status;
}

enum msc_status msc_place__see_whole(struct msc_place_measure *m) {
    const struct msc_place_tiling whole = {.n = 1, .firsts = {0, m->n_groups}};
    struct msc_place_seen *s = m->seen;
    size_t last = m->n_groups - 1;
    MSC_TRY(msc_place__see(m, &whole));
    for (size_t b = 0; b < m->n_backends; b++) {
        size_t at = seen_index(s, 0, last, b, b);
        if (s->counts[at] > 0 && (!m->reference.model || s->us[at] < m->reference_us)) {
            m->reference_us = s->us[at];
            m->reference.model = "";
            m->fastest = b;
        }
    }
    if (m->reference.model) {
        MSC_TRY(write_run(&m->reference, m, variant_of(m, m->fastest), 0, last, "whole"));
        m->reference.backend = m->backends[m->fastest];
    }
    return MSC_OK;
}

// ---- Which tilings ----------------------------------------------------------------------------

bool msc_place__next(struct msc_place_tiling *t, const struct msc_place_measure *m) {
    const struct msc_place_seen *s = m->seen;
    int32_t score[MSC_PLACE_MOST_GROUPS + 1] = {0};
    size_t from[MSC_PLACE_MOST_GROUPS + 1] = {0}, n = m->n_groups;
    for (size_t end = 1; end <= n; end++) {
        score[end] = INT32_MIN;
        for (size_t first = 0; first < end; first++) {
            int32_t n_new = s->is_tried[run_index(s, first, end - 1)] ? 0 : (int32_t)(end - first);
            int32_t sum = score[first] + n_new * MSC_PLACE_MOST_GROUPS - 1; // few pieces
            if (sum > score[end]) {
                score[end] = sum;
                from[end] = first;
            }
        }
    }
    t->n = 0;
    for (size_t end = n; end > 0; end = from[end]) {
        t->n++;
    }
    t->firsts[t->n] = n;
    for (size_t i = t->n; i > 0; i--) {
        t->firsts[i - 1] = from[t->firsts[i]];
    }
    return score[n] > 0;
}

// ---- Conclusions ------------------------------------------------------------------------------

// The price of a cut before group `first`: what longer a piece takes after another backend than
// after its own, the median over the pieces that begin there. 0 if unknown.
static double price(const struct msc_place_seen *s, size_t first, size_t before, size_t backend) {
    double known[MSC_PLACE_MOST_GROUPS];
    size_t n = 0;
    for (size_t last = first; last < s->n_groups; last++) {
        size_t cut = seen_index(s, first, last, backend, before);
        size_t plain = seen_index(s, first, last, backend, backend);
        if (s->counts[cut] > 0 && s->counts[plain] > 0) {
            known[n++] = s->us[cut] - s->us[plain];
        }
    }
    return n > 0 ? msc_quartiles_of(known, n).median : 0.0;
}

// The mean over the pieces before it of a run's latency without the price of the cut.
static double latency_of(const struct msc_place_table *p, const struct msc_place_seen *s,
                         size_t first, size_t last, size_t backend) {
    double sum = 0.0;
    size_t n = 0;
    for (size_t before = 0; before < s->n_backends; before++) {
        size_t at = seen_index(s, first, last, backend, before);
        if (s->counts[at] > 0) {
            double cut = first > 0 ? *msc_place_table_cut(p, first, before, backend) : 0.0;
            sum += s->us[at] - cut;
            n++;
        }
    }
    return n > 0 ? fmax(sum / (double)n, 0.0) : NAN;
}

void msc_place__conclude(struct msc_place_table *p, const struct msc_place_measure *m) {
    const struct msc_place_seen *s = m->seen;
    for (size_t first = 0; first < s->n_groups; first++) {
        p->cut_bytes[first] = first > 0 ? s->bytes[first - 1] : 0.0;
        for (size_t i = 0; i < s->n_backends * s->n_backends && first > 0; i++) {
            size_t before = i / s->n_backends, backend = i % s->n_backends;
            *msc_place_table_cut(p, first, before, backend) = price(s, first, before, backend);
        }
        for (size_t last = first; last < s->n_groups; last++) {
            for (size_t b = 0; b < s->n_backends; b++) {
                *msc_place_table_us(p, first, last, b) = latency_of(p, s, first, last, b);
            }
        }
    }
}

void msc_place__tile(struct msc_place_tiling *t, const uint32_t choices[], size_t n_groups) {
    t->n = 0;
    for (size_t i = 0; i < n_groups; i++) {
        if (i == 0 || choices[i] != choices[i - 1]) {
            t->firsts[t->n++] = i;
        }
    }
    t->firsts[t->n] = n_groups;
}

// The latency of a piece without the price of the cut before it; NaN: it was left out.
static double part_us_alone(struct request *r, const struct msc_place_table *p, size_t chain,
                            size_t tile) {
    size_t from = tile_before(&r->parts[chain * r->t->n], tile);
    double cut = *msc_place_table_cut(p, r->t->firsts[tile], r->choices[from], r->choices[tile]);
    return part_us(r, chain, tile) - cut;
}

static enum msc_status see_point(struct request *r, struct msc_place_table *p,
                                 const uint32_t choices[]) {
    MSC_TRY(request_init(r, 1));
    for (size_t i = 0; i < r->n_chains * r->t->n; i++) {
        r->choices[i] = choices[r->t->firsts[i % r->t->n]];
    }
    MSC_TRY(request_run(r));
    for (size_t i = 0; i < r->t->n; i++) {
        size_t first = r->t->firsts[i], last = r->t->firsts[i + 1] - 1;
        double us = 0.0;
        for (size_t c = 0; c < r->n_chains; c++) {
            us += part_us_alone(r, p, c, i) / (double)r->n_chains;
        }
        *msc_place_table_us(p, first, last, r->choices[i]) = isnan(us) ? NAN : fmax(us, 0.0);
    }
    return MSC_OK;
}

enum msc_status msc_place__see_point(struct msc_place_table *p, struct msc_place_measure *m,
                                     const uint32_t choices[]) {
    struct msc_place_tiling t;
    msc_place__tile(&t, choices, p->n_groups);
    struct request r = {
        .m = m, .t = &t, .n_rounds = MORE_ROUNDS * m->o->n_rounds, .n_copies = MORE_COPIES};
    enum msc_status status = see_point(&r, p, choices);
    request_finish(&r);
    return status;
}
