// Measures a placement whole, beside the network's own file on each backend, in fresh processes.
#include "base/file.h"
#include "model/place_internal.h"

#include <math.h>
#include <string.h>

// Chains of a check: for each backend the network's own file, twice; then the point, twice; then
// for each backend the piece that would be delivered alone.
struct check {
    struct msc_place_check *out;
    const struct msc_graph *g;
    const struct msc_place_table *p;
    const double *losses; // [n_variants] of whole variants
    const struct msc_place_options *o;
    struct msc_scratch scratch;
    size_t n_chains;
    struct msc_runtime_chain *chains;
    struct msc_runtime_piece *mix;     // [2, n_mix]
    struct msc_runtime_piece *singles; // [n_backends, 3]
    size_t n_mix;
    const char **missing; // [n_chains] why a process could not run it; NULL: each could
    double *us;           // [n_processes, n_chains] median over the rounds; NaN: not measured
    double *ratios;       // [n_processes, n_backends] of the mix to each whole
    double *form_ratios;  // [n_backends, n_processes, 2] of the mix and its copy to each form
    double *spreads;      // [n_processes, n_backends + 1]
    const char **backends;
};

static size_t mix_chain(const struct check *c) {
    return 2 * c->p->n_backends;
}

static enum msc_status take_outputs(struct msc_runtime_piece *out, const struct msc_piece *piece,
                                    struct msc_arena *arena) {
    const char **names = msc_arena_array(arena, piece->n_outputs + 1, sizeof *names);
    MSC_TRY(MSC_ALLOCATED(names));
    for (size_t i = 0; i < piece->n_outputs; i++) {
        names[i] = msc_arena_strdup(arena, piece->outputs[i].name);
        MSC_TRY(MSC_ALLOCATED(names[i]));
    }
    out->outputs = names;
    out->n_outputs = piece->n_outputs;
    return MSC_OK;
}

// Writes the pieces of a point to a folder of the scratch. *out [n_pieces], in the arena.
static enum msc_status write_point(struct msc_runtime_piece **out, size_t *n, struct check *c,
                                   const uint32_t choices[], size_t index) {
    struct msc_arena *arena = &c->out->arena;
    struct msc_pieces *pieces = NULL;
    const char *folder = msc_arena_printf(arena, "%s/%zu", c->scratch.path, index);
    MSC_TRY(MSC_ALLOCATED(folder));
    MSC_TRY(msc_file_make_folders(folder));
    MSC_TRY(msc_place__split(&pieces, c->g, c->p, choices, c->o, folder));
    *n = pieces->n_pieces;
    *out = msc_arena_array(arena, *n, sizeof **out);
    enum msc_status status = MSC_ALLOCATED(*out);
    for (size_t i = 0; i < *n && status == MSC_OK; i++) {
        const struct msc_piece *piece = &pieces->pieces[i];
        (*out)[i] = (struct msc_runtime_piece){
            .model = msc_path_join(arena, folder, piece->model),
            .backend = msc_arena_strdup(arena, piece->device ? piece->device : piece->runtime)};
        status = MSC_ALLOCATED((*out)[i].model && (*out)[i].backend);
        status = status == MSC_OK ? take_outputs(&(*out)[i], piece, arena) : status;
    }
    msc_pieces_close(pieces);
    return status;
}

// The network's own file on a backend, a second copy, and the piece of the whole network.
static enum msc_status add_backend(struct check *c, size_t backend) {
    uint32_t choices[MSC_PLACE_MOST_GROUPS];
    struct msc_runtime_piece *alone = NULL, *pieces = &c->singles[3 * backend];
    size_t n;
    for (size_t i = 0; i < c->p->n_groups; i++) {
        choices[i] = (uint32_t)backend;
    }
    MSC_TRY(write_point(&alone, &n, c, choices, 1 + backend));
    pieces[0] = pieces[1] = pieces[2] = alone[0];
    size_t variant = c->p->backends[backend].variant;
    pieces[0].model = pieces[1].model =
        variant > 0 ? c->o->variants[variant - 1].path : c->o->model;
    pieces[1].copy = 1;
    for (size_t i = 0; i < 2; i++) {
        c->chains[2 * backend + i] =
            (struct msc_runtime_chain){.pieces = &pieces[i], .n_pieces = 1};
    }
    c->chains[mix_chain(c) + 2 + backend] =
        (struct msc_runtime_chain){.pieces = &pieces[2], .n_pieces = 1};
    return MSC_OK;
}

static enum msc_status add_mix(struct check *c, const uint32_t choices[]) {
    struct msc_runtime_piece *pieces = NULL;
    MSC_TRY(write_point(&pieces, &c->n_mix, c, choices, 0));
    c->mix = msc_arena_array(&c->out->arena, 2 * c->n_mix, sizeof c->mix[0]);
    MSC_TRY(MSC_ALLOCATED(c->mix));
    for (size_t i = 0; i < 2 * c->n_mix; i++) {
        c->mix[i] = pieces[i % c->n_mix];
        c->mix[i].copy = i >= c->n_mix;
    }
    for (size_t i = 0; i < 2; i++) {
        c->chains[mix_chain(c) + i] =
            (struct msc_runtime_chain){.pieces = &c->mix[i * c->n_mix], .n_pieces = c->n_mix};
    }
    return MSC_OK;
}

static enum msc_status check_init(struct check *c, const uint32_t choices[]) {
    struct msc_arena *arena = &c->out->arena;
    size_t k = c->p->n_backends, n = (size_t)c->o->n_processes;
    c->n_chains = 3 * k + 2;
    c->chains = msc_arena_array(arena, c->n_chains, sizeof c->chains[0]);
    c->singles = msc_arena_array(arena, 3 * k, sizeof c->singles[0]);
    c->us = msc_arena_array(arena, n * c->n_chains, sizeof c->us[0]);
    c->missing = msc_arena_array(arena, c->n_chains, sizeof c->missing[0]);
    c->ratios = msc_arena_array(arena, n * k, sizeof c->ratios[0]);
    c->form_ratios = msc_arena_array(arena, 2 * n * k, sizeof c->form_ratios[0]);
    c->spreads = msc_arena_array(arena, n * (k + 1), sizeof c->spreads[0]);
    c->backends = msc_arena_array(arena, k, sizeof c->backends[0]);
    c->out->n_wholes = k;
    c->out->wholes = msc_arena_array(arena, k, sizeof c->out->wholes[0]);
    c->out->forms = msc_arena_array(arena, k, sizeof c->out->forms[0]);
    MSC_TRY(MSC_ALLOCATED(c->chains && c->singles && c->us && c->missing && c->ratios &&
                          c->form_ratios && c->spreads && c->backends && c->out->wholes &&
                          c->out->forms));
    for (size_t i = 0; i < c->n_chains; i++) {
        c->missing[i] = NULL;
    }
    MSC_TRY(msc_scratch_make(&c->scratch, arena));
    for (size_t b = 0; b < k; b++) {
        c->backends[b] = msc_arena_strdup(arena, c->p->backends[b].name);
        MSC_TRY(MSC_ALLOCATED(c->backends[b]));
    }
    MSC_TRY(add_mix(c, choices));
    for (size_t b = 0; b < k; b++) {
        MSC_TRY(add_backend(c, b));
    }
    return MSC_OK;
}

// The variant of a chain; of the pieces, the last.
static size_t variant_of(const struct check *c, size_t chain) {
    size_t mix = mix_chain(c);
    return chain < mix        ? c->p->backends[chain / 2].variant
           : chain >= mix + 2 ? c->p->backends[chain - mix - 2].variant
                              : c->p->n_variants - 1;
}

// True if a chain of the last process was measured, and computes what the network computes.
static bool is_measured(const struct check *c, size_t chain) {
    return !c->chains[chain].missing &&
           c->chains[chain].error <= msc_place__most_error(variant_of(c, chain));
}

// The median over the rounds of one chain's latency to another's; NaN: one was not measured.
static enum msc_status take_ratio(double *out, const struct check *c, const struct msc_latency *l,
                                  size_t chain, size_t base) {
    struct msc_quartiles q = {.median = NAN};
    bool is_known = is_measured(c, chain) && is_measured(c, base);
    MSC_TRY(is_known ? msc_latency_ratios(&q, l, chain, base) : MSC_OK);
    *out = q.median;
    return MSC_OK;
}

// Notes each chain's median latency, the differences of two copies, and the ratios of the mix.
static enum msc_status note_process(struct check *c, const struct msc_latency *l, size_t process) {
    size_t k = c->p->n_backends, mix = mix_chain(c);
    double *us = &c->us[process * c->n_chains];
    for (size_t i = 0; i < c->n_chains; i++) {
        struct msc_quartiles q = {.median = NAN};
        MSC_TRY(is_measured(c, i) ? msc_latency_quartiles(&q, l, i) : MSC_OK);
        us[i] = q.median;
        if (isnan(us[i]) && !c->missing[i]) {
            c->missing[i] = c->chains[i].missing ? c->chains[i].missing
                                                 : "its outputs differ from those of the network";
        }
    }
    for (size_t i = 0; i <= mix; i += 2) {
        double *spread = &c->spreads[process * (k + 1) + i / 2];
        MSC_TRY(take_ratio(spread, c, l, i + 1, i));
        *spread = fabs(*spread - 1.0);
    }
    for (size_t b = 0; b < k; b++) {
        double *of_form = &c->form_ratios[2 * (b * (size_t)c->o->n_processes + process)];
        MSC_TRY(take_ratio(&c->ratios[process * k + b], c, l, mix, 2 * b));
        MSC_TRY(take_ratio(&of_form[0], c, l, mix, mix + 2 + b));
        MSC_TRY(take_ratio(&of_form[1], c, l, mix + 1, mix + 2 + b));
    }
    return MSC_OK;
}

static enum msc_status measure_process(struct check *c, size_t process) {
    struct msc_runtime *runtime = NULL;
    struct msc_latency l = {0};
    struct msc_runtime_chains job = msc_place__job(c->o, &c->out->arena);
    struct msc_runtime_piece *values =
        msc_arena_array(&c->out->arena, c->n_mix + 1, sizeof *values);
    MSC_TRY(MSC_ALLOCATED(values));
    values[0] = c->singles[0];
    values[0].may_fail = true;
    memcpy(&values[1], c->mix, c->n_mix * sizeof values[0]);
    job.values = values;
    job.n_values = c->n_mix + 1;
    job.others = c->backends;
    job.n_others = c->p->n_backends;
    job.chains = c->chains;
    job.n_chains = c->n_chains;
    enum msc_status status = msc_place__start(&runtime, c->o, c->backends, c->p->n_backends);
    status = status == MSC_OK ? msc_runtime_chains(&l, runtime, &job) : status;
    status = status == MSC_OK ? note_process(c, &l, process) : status;
    msc_latency_finish(&l);
    msc_runtime_stop(runtime);
    return status;
}

// ---- The verdict ------------------------------------------------------------------------------

static struct msc_place_whole sum_up(const struct check *c, size_t chain, const char *backend) {
    size_t k = c->p->n_backends;
    bool has_copy = chain <= mix_chain(c); // which must run too, else the spread is unknown
    struct msc_place_whole whole = {.backend = backend,
                                    .missing = c->missing[chain],
                                    .us = INFINITY,
                                    .error = c->chains[chain].error};
    whole.missing = whole.missing || !has_copy ? whole.missing : c->missing[chain + 1];
    for (size_t i = 0; i < (size_t)c->o->n_processes; i++) {
        whole.us = fmin(whole.us, c->us[i * c->n_chains + chain]);
        if (has_copy) {
            whole.spread = fmax(whole.spread, c->spreads[i * (k + 1) + chain / 2]);
        }
    }
    whole.us = whole.missing ? NAN : whole.us;
    return whole;
}

// The point to deliver: the pieces if they win, else the fastest backend alone.
static enum msc_status choose_best(struct check *c, const uint32_t choices[]) {
    struct msc_place_check *out = c->out;
    uint32_t *best = msc_arena_array(&out->arena, c->p->n_groups, sizeof *best);
    MSC_TRY(MSC_ALLOCATED(best));
    for (size_t i = 0; i < c->p->n_groups; i++) {
        best[i] = out->wins ? choices[i] : (uint32_t)out->fastest;
    }
    out->best = best;
    return MSC_OK;
}

// Sums up every backend, and finds the fastest whole one within the bound on the loss; its place is
// n_backends if there is none.
static void find_fastest(struct check *c) {
    struct msc_place_check *out = c->out;
    size_t k = c->p->n_backends;
    out->mix = sum_up(c, mix_chain(c), NULL);
    out->spread = out->mix.spread;
    out->fastest = k;
    for (size_t b = 0; b < k; b++) {
        out->wholes[b] = sum_up(c, 2 * b, c->p->backends[b].label);
        out->forms[b] = sum_up(c, mix_chain(c) + 2 + b, c->p->backends[b].label);
        out->spread = fmax(out->spread, out->wholes[b].spread);
        bool is_less = out->fastest == k || out->wholes[b].us < out->wholes[out->fastest].us;
        bool is_allowed =
            isinf(c->o->most_loss) || c->losses[c->p->backends[b].variant] <= c->o->most_loss;
        out->fastest = !out->wholes[b].missing && is_allowed && is_less ? b : out->fastest;
    }
}

// Compares the pieces with the fastest backend.
static void compare_mix(struct check *c, const uint32_t choices[]) {
    struct msc_place_check *out = c->out;
    size_t k = c->p->n_backends, n = (size_t)c->o->n_processes;
    bool has_form = !out->forms[out->fastest].missing && !out->mix.missing;
    for (size_t i = 0; i < n; i++) {
        out->ratio = fmax(out->ratio, c->ratios[i * k + out->fastest]);
    }
    out->ratio = out->mix.missing ? NAN : out->ratio; // then the pieces do not win
    out->form_ratio =
        has_form ? msc_quartiles_of(&c->form_ratios[out->fastest * 2 * n], 2 * n).median : NAN;
    // A plan of one piece may win too: its backend may refuse the network's file but not the piece.
    bool is_other = c->n_mix > 1 || choices[0] != out->fastest;
    out->wins = is_other && out->ratio < 1.0 - out->spread;
}

static enum msc_status judge(struct check *c, const uint32_t choices[]) {
    struct msc_place_check *out = c->out;
    find_fastest(c);
    bool has_whole = out->fastest < c->p->n_backends;
    if (out->mix.missing && !has_whole) {
        return MSC_FAIL(MSC_E_STATE, "placement: the pieces cannot run: %s", out->mix.missing);
    }
    if (has_whole) {
        compare_mix(c, choices);
    } else {
        out->wins = true;
        out->ratio = out->form_ratio = NAN;
    }
    if (!out->wins && out->forms[out->fastest].missing) {
        return MSC_FAIL(MSC_E_STATE,
                        "placement: %s alone is the fastest, but it cannot run the network as one "
                        "piece: %s; use the network's file, or leave this backend out",
                        out->wholes[out->fastest].backend, out->forms[out->fastest].missing);
    }
    return choose_best(c, choices);
}

enum msc_status msc_place_check(struct msc_place_check *out, const struct msc_graph *g,
                                const struct msc_place_table *p, const uint32_t choices[],
                                const double losses[], const struct msc_place_options *o) {
    struct check c = {.out = out, .g = g, .p = p, .losses = losses, .o = o};
    enum msc_status status = check_init(&c, choices);
    for (size_t i = 0; i < (size_t)o->n_processes && status == MSC_OK; i++) {
        msc_log(o->log, MSC_LOG_INFO, "placement: process %zu of %lld", i,
                (long long)o->n_processes);
        status = measure_process(&c, i);
    }
    status = status == MSC_OK ? judge(&c, choices) : status;
    msc_scratch_remove(&c.scratch);
    return status;
}

void msc_place_check_finish(struct msc_place_check *check) {
    msc_arena_finish(&check->arena);
    *check = (struct msc_place_check){0};
}
