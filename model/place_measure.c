// Measures the table of placement: first each group alone, to join neighbours that prefer the same
// backend, then every run of the groups that are left, then the price of a cut.
#include "base/file.h"
#include "graph/cost.h"
#include "graph/passes/chain.h"
#include "kernels/vulkan/vulkan.h"
#include "model/file_hash.h"
#include "model/place_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_ATOMS = 48,      // groups that are measured alone
    RUNS_PER_REQUEST = 8, // on every backend; their weights are loaded at the same time
    CUTS_MEASURED = 4,
};

struct measure {
    const struct msc_graph *g;
    const struct msc_place_options *o;
    struct msc_arena arena;
    struct msc_scratch scratch;
    struct msc_runtime *runtime;
    size_t n_backends;
    const char **backends;
    int32_t *groups; // [n_joints]
    size_t n_groups;
    struct msc_runtime_piece *singles; // [n_groups] each group alone
};

// ---- Backends ---------------------------------------------------------------------------------

static bool is_device(const char *backend) {
    return strcmp(backend, "cpu") == 0 || strncmp(backend, "vulkan", strlen("vulkan")) == 0;
}

enum msc_status msc_place__start(struct msc_runtime **out, const struct msc_place_options *o,
                                 const char *const backends[], size_t n) {
    struct msc_runtime_options options = MSC_RUNTIME_OPTIONS_INIT;
    const struct msc_runtime_found *found;
    options.cancel = o->cancel;
    options.has_own = true;
    MSC_TRY(msc_runtime_start(out, &options));
    const struct msc_runtime_host *host = msc_runtime_host(*out);
    for (size_t i = 0; i < n; i++) {
        if (is_device(backends[i]) && !host->own.version) {
            return MSC_FAIL(MSC_E_DEVICE, "backend %s: %s", backends[i],
                            host->own.missing ? host->own.missing
                                              : "this mscgym-runtime cannot run it");
        }
        enum msc_status status =
            is_device(backends[i]) ? MSC_OK : msc_runtime_find(&found, *out, backends[i]);
        if (status == MSC_E_INVALID) {
            return MSC_FAIL(status, "%s, or a device of mscgym, such as cpu", msc_status_message());
        }
        MSC_TRY(status);
        if (!is_device(backends[i]) && !found->runs_chains) {
            return MSC_FAIL(MSC_E_UNSUPPORTED, "backend %s: it does not run pieces of networks",
                            backends[i]);
        }
    }
    return MSC_OK;
}

// Names every backend of this machine, unless the options name some.
static enum msc_status choose_backends(struct measure *m) {
    const struct msc_runtime_host *host = msc_runtime_host(m->runtime);
    size_t most = m->o->n_backends + host->n_found + 2;
    m->backends = msc_arena_array(&m->arena, most, sizeof m->backends[0]);
    MSC_TRY(MSC_ALLOCATED(m->backends));
    for (size_t i = 0; i < m->o->n_backends; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(m->o->backends[i], m->o->backends[k]) == 0) {
                return MSC_FAIL(MSC_E_INVALID, "place: backend %s is named twice",
                                m->o->backends[i]);
            }
        }
        m->backends[m->n_backends++] = m->o->backends[i];
    }
    for (size_t i = 0; i < host->n_found && m->o->n_backends == 0; i++) {
        if (host->found[i].version && host->found[i].runs_chains) {
            m->backends[m->n_backends++] = host->found[i].name;
        }
    }
    if (m->o->n_backends == 0 && host->own.version) {
        m->backends[m->n_backends++] = "cpu";
        if (msc_vulkan_first_gpu() >= 0) {
            m->backends[m->n_backends++] = "vulkan";
        }
    }
    return m->n_backends > 0 && m->n_backends <= MSC_PLACE_MOST_BACKENDS
               ? MSC_OK
               : MSC_FAIL(MSC_E_DEVICE, "place: %zu backends, expected 1 to %d", m->n_backends,
                          MSC_PLACE_MOST_BACKENDS);
}

static const char *backend_version(const struct measure *m, const char *backend) {
    const struct msc_runtime_host *host = msc_runtime_host(m->runtime);
    for (size_t i = 0; i < host->n_found; i++) {
        if (strcmp(host->found[i].name, backend) == 0) {
            return host->found[i].version;
        }
    }
    return MSC_VERSION;
}

struct msc_runtime_chains msc_place__job(const struct msc_place_options *o,
                                         struct msc_arena *arena) {
    struct msc_runtime_chains job = MSC_RUNTIME_CHAINS_INIT;
    job.inputs = o->inputs;
    job.batch = o->batch;
    job.bindings = o->bindings;
    job.n_bindings = o->n_bindings;
    job.n_threads = o->n_threads;
    job.n_rounds = o->n_rounds;
    job.arena = arena;
    return job;
}

// ---- Runs -------------------------------------------------------------------------------------

static enum msc_status write_run(struct msc_runtime_piece *out, struct measure *m, size_t first,
                                 size_t last, const char *kind) {
    const struct msc_place_runs runs = {.g = m->g, .groups = m->groups, .folder = m->scratch.path};
    MSC_TRY(msc_place_write_run(out, &runs, first, last, kind, &m->arena));
    out->backend = m->backends[0];
    return MSC_OK;
}

// The models of the groups as they are now.
static enum msc_status write_singles(struct measure *m, const char *kind) {
    m->singles = msc_arena_array(&m->arena, m->n_groups, sizeof m->singles[0]);
    MSC_TRY(MSC_ALLOCATED(m->singles));
    for (size_t i = 0; i < m->n_groups; i++) {
        MSC_TRY(write_run(&m->singles[i], m, i, i, kind));
    }
    return MSC_OK;
}

// Measures chains in turn. us[i]: the least latency over the rounds; NaN if a backend cannot run the
// chain or computes something else.
static enum msc_status measure_chains(double us[], struct measure *m,
                                      struct msc_runtime_chain chains[], size_t n) {
    struct msc_latency l = {0};
    struct msc_runtime_chains job = msc_place__job(m->o, &m->arena);
    job.values = m->singles;
    job.n_values = m->n_groups;
    job.others = m->backends;
    job.n_others = m->n_backends;
    job.chains = chains;
    job.n_chains = n;
    MSC_TRY(msc_runtime_chains(&l, m->runtime, &job));
    for (size_t i = 0; i < n; i++) {
        us[i] = NAN;
        if (chains[i].missing) {
            msc_log(m->o->log, MSC_LOG_DEBUG, "placement: %s", chains[i].missing);
        } else if (chains[i].error > MSC_PLACE_MOST_ERROR) {
            msc_log(m->o->log, MSC_LOG_WARNING,
                    "placement: %s computes something else: its error is %.2g of the values, so "
                    "it takes no part there",
                    chains[i].pieces[0].backend, chains[i].error);
        } else {
            us[i] = msc_latency_least(&l, i);
        }
    }
    msc_latency_finish(&l);
    return MSC_OK;
}

// A run to measure on every backend, and where its latencies go.
struct run {
    size_t first, last;
    double *us; // [n_backends]
};

static enum msc_status measure_some(struct measure *m, const struct run runs[], size_t n,
                                    const char *kind) {
    size_t n_chains = n * m->n_backends;
    struct msc_runtime_chain *chains = msc_alloc_zero(n_chains, sizeof *chains);
    struct msc_runtime_piece *pieces = msc_alloc_zero(n_chains, sizeof *pieces);
    double *us = msc_alloc_zero(n_chains, sizeof *us);
    enum msc_status status = MSC_ALLOCATED(chains && pieces && us);
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        struct msc_runtime_piece piece = {0};
        status = runs[i].first == runs[i].last
                     ? MSC_OK
                     : write_run(&piece, m, runs[i].first, runs[i].last, kind);
        piece = piece.model ? piece : m->singles[runs[i].first];
        for (size_t b = 0; b < m->n_backends; b++) {
            size_t k = i * m->n_backends + b;
            pieces[k] = piece;
            pieces[k].backend = m->backends[b];
            chains[k] = (struct msc_runtime_chain){.pieces = &pieces[k], .n_pieces = 1};
        }
    }
    status = status == MSC_OK ? measure_chains(us, m, chains, n_chains) : status;
    for (size_t i = 0; i < n && status == MSC_OK; i++) {
        memcpy(runs[i].us, &us[i * m->n_backends], m->n_backends * sizeof us[0]);
        if (runs[i].first != runs[i].last) {
            (void)remove(pieces[i * m->n_backends].model);
        }
    }
    msc_free(chains);
    msc_free(pieces);
    msc_free(us);
    return status;
}

static enum msc_status measure_runs(struct measure *m, const struct run runs[], size_t n,
                                    const char *kind) {
    for (size_t i = 0; i < n; i += RUNS_PER_REQUEST) {
        size_t count = n - i < RUNS_PER_REQUEST ? n - i : RUNS_PER_REQUEST;
        msc_log(m->o->log, MSC_LOG_INFO, "placement: %s %zu of %zu", kind, i, n);
        MSC_TRY(measure_some(m, &runs[i], count, kind));
    }
    return MSC_OK;
}

// ---- Joining groups ---------------------------------------------------------------------------

static double least_of(const double us[], size_t n) {
    double least = INFINITY;
    for (size_t i = 0; i < n; i++) {
        least = us[i] < least ? us[i] : least;
    }
    return least;
}

static double least_of_sum(const double a[], const double b[], size_t n) {
    double least = INFINITY;
    for (size_t i = 0; i < n; i++) {
        least = a[i] + b[i] < least ? a[i] + b[i] : least;
    }
    return least;
}

// Joins the neighbours that lose least by having one backend, until `most` groups are left; of
// equal losses, the shortest. us [n_groups, n_backends] has the latency of each group alone.
static void join_alike(int32_t into[], double us[], const struct measure *m, size_t most) {
    size_t k = m->n_backends;
    for (size_t left = m->n_groups; left > most; left--) {
        size_t best = 0;
        double best_loss = INFINITY, best_sum = INFINITY;
        for (size_t i = 0; i + 1 < left; i++) {
            const double *a = &us[i * k], *b = &us[(i + 1) * k];
            double sum = least_of_sum(a, b, k);
            double loss = isinf(sum) ? sum : sum - least_of(a, k) - least_of(b, k);
            if (loss < best_loss || (loss == best_loss && sum < best_sum)) {
                best = i;
                best_loss = loss;
                best_sum = sum;
            }
        }
        for (size_t b = 0; b < k; b++) {
            us[best * k + b] += us[(best + 1) * k + b];
        }
        memmove(&us[(best + 1) * k], &us[(best + 2) * k], (left - best - 2) * k * sizeof us[0]);
        for (size_t i = 0; i < m->n_groups; i++) {
            into[i] -= into[i] > (int32_t)best;
        }
    }
}

static enum msc_status join_groups(struct measure *m) {
    size_t most = (size_t)m->o->most_groups, n = m->n_groups;
    if (n <= most) {
        return MSC_OK;
    }
    double *us = msc_arena_array(&m->arena, n * m->n_backends, sizeof *us);
    int32_t *into = msc_arena_array(&m->arena, n, sizeof *into);
    struct run *runs = msc_arena_array(&m->arena, n, sizeof *runs);
    MSC_TRY(MSC_ALLOCATED(us && into && runs));
    for (size_t i = 0; i < n; i++) {
        runs[i] = (struct run){.first = i, .last = i, .us = &us[i * m->n_backends]};
        into[i] = (int32_t)i;
    }
    MSC_TRY(measure_runs(m, runs, n, "part"));
    join_alike(into, us, m, most);
    msc_graph_chain_join(m->groups, m->g, into);
    m->n_groups = most;
    return write_singles(m, "group");
}

// ---- Prices of cuts ---------------------------------------------------------------------------

// Measures the two groups around a cut alone and as chains of two backends. prices [n_backends,
// n_backends, CUTS_MEASURED]: NaN if unknown.
static enum msc_status measure_cut(double prices[], struct measure *m, size_t left, size_t index) {
    size_t k = m->n_backends, n_chains = 2 * k + k * k;
    struct msc_runtime_chain *chains = msc_alloc_zero(n_chains, sizeof *chains);
    struct msc_runtime_piece *pieces = msc_alloc_zero(2 * n_chains, sizeof *pieces);
    double *us = msc_alloc_zero(n_chains, sizeof *us);
    enum msc_status status = MSC_ALLOCATED(chains && pieces && us);
    for (size_t i = 0; i < n_chains && status == MSC_OK; i++) {
        bool is_pair = i >= 2 * k;
        size_t from = is_pair ? (i - 2 * k) / k : i % k, to = (i - 2 * k) % k;
        struct msc_runtime_piece *p = &pieces[2 * i];
        p[0] = m->singles[left + (!is_pair && i >= k)];
        p[0].backend = m->backends[from];
        p[1] = m->singles[left + 1];
        p[1].backend = m->backends[is_pair ? to : 0];
        chains[i] = (struct msc_runtime_chain){.pieces = p, .n_pieces = is_pair ? 2 : 1};
    }
    status = status == MSC_OK ? measure_chains(us, m, chains, n_chains) : status;
    for (size_t i = 0; i < k * k && status == MSC_OK; i++) {
        prices[i * CUTS_MEASURED + index] = us[2 * k + i] - us[i / k] - us[k + i % k];
    }
    msc_free(chains);
    msc_free(pieces);
    msc_free(us);
    return status;
}

// The price from one backend to another is the median over some cuts, at least 0.
static enum msc_status measure_cuts(struct msc_place_table *p, struct measure *m) {
    size_t k = m->n_backends, n_cuts = m->n_groups - 1;
    size_t n = n_cuts < CUTS_MEASURED ? n_cuts : CUTS_MEASURED;
    double *prices = msc_arena_array(&m->arena, k * k * CUTS_MEASURED, sizeof *prices);
    MSC_TRY(MSC_ALLOCATED(prices));
    for (size_t i = 0; i < n; i++) {
        msc_log(m->o->log, MSC_LOG_INFO, "placement: cut %zu of %zu", i, n);
        MSC_TRY(measure_cut(prices, m, (2 * i + 1) * n_cuts / (2 * n), i));
    }
    for (size_t i = 0; i < k * k; i++) {
        double known[CUTS_MEASURED];
        size_t n_known = 0;
        for (size_t c = 0; c < n; c++) {
            if (!isnan(prices[i * CUTS_MEASURED + c])) {
                known[n_known++] = prices[i * CUTS_MEASURED + c];
            }
        }
        double price = n_known > 0 ? msc_quartiles_of(known, n_known).median : 0.0;
        p->cut_us[i] = i / k == i % k || price < 0.0 ? 0.0 : price;
    }
    return MSC_OK;
}

// ---- The table --------------------------------------------------------------------------------

static enum msc_status describe_groups(struct msc_place_table *p, const struct measure *m) {
    for (int32_t i = 0; i < msc_graph_n_joints(m->g); i++) {
        const struct msc_joint *j = msc_graph_joint(m->g, i);
        if (m->groups[i] < 0) {
            continue;
        }
        struct msc_place_group *group = &p->groups[m->groups[i]];
        group->name = group->name ? group->name : msc_arena_strdup(&p->arena, j->name);
        MSC_TRY(MSC_ALLOCATED(group->name));
        group->n_joints++;
        group->macs += msc_joint_macs(m->g, j);
    }
    return MSC_OK;
}

static enum msc_status describe(struct msc_place_table *p, const struct measure *m) {
    char text[MSC_HASH_TEXT_BYTES], *model;
    struct msc_hash hash;
    MSC_TRY(msc_file_hash(&hash, m->o->model));
    MSC_TRY(msc_path_relative(&model, &p->arena, m->o->model, m->o->folder));
    p->model = model;
    p->model_hash = msc_arena_strdup(&p->arena, msc_hash_format(text, hash));
    p->processor = msc_arena_strdup(&p->arena, msc_runtime_host(m->runtime)->processor);
    p->n_threads = m->o->n_threads;
    p->n_rounds = m->o->n_rounds;
    p->batch = m->o->batch;
    for (size_t i = 0; i < m->n_backends; i++) {
        p->backends[i].name = msc_arena_strdup(&p->arena, m->backends[i]);
        p->backends[i].version = msc_arena_strdup(&p->arena, backend_version(m, m->backends[i]));
        MSC_TRY(MSC_ALLOCATED(p->backends[i].name && p->backends[i].version));
    }
    MSC_TRY(MSC_ALLOCATED(p->model_hash && p->processor));
    return describe_groups(p, m);
}

static enum msc_status fill_table(struct msc_place_table *p, struct measure *m) {
    size_t n = 0;
    struct run *runs =
        msc_arena_array(&m->arena, m->n_groups * (m->n_groups + 1) / 2, sizeof *runs);
    MSC_TRY(MSC_ALLOCATED(runs));
    for (size_t first = 0; first < m->n_groups; first++) {
        for (size_t last = first; last < m->n_groups; last++) {
            runs[n++] = (struct run){first, last, msc_place_table_us(p, first, last, 0)};
        }
    }
    MSC_TRY(measure_runs(m, runs, n, "run"));
    MSC_TRY(measure_cuts(p, m));
    return describe(p, m);
}

static enum msc_status find_groups(struct measure *m) {
    int32_t n_groups = 0;
    m->groups =
        msc_arena_array(&m->arena, (size_t)msc_graph_n_joints(m->g) + 1, sizeof m->groups[0]);
    MSC_TRY(MSC_ALLOCATED(m->groups));
    MSC_TRY(msc_graph_chain(m->groups, &n_groups, m->g, MOST_ATOMS));
    m->n_groups = (size_t)n_groups;
    return n_groups > 0 ? MSC_OK
                        : MSC_FAIL(MSC_E_INVALID, "%s: the network computes nothing", m->o->model);
}

static enum msc_status measure_all(struct msc_place_table **out, struct measure *m) {
    MSC_TRY(msc_scratch_make(&m->scratch, &m->arena));
    MSC_TRY(msc_place__start(&m->runtime, m->o, m->o->backends, m->o->n_backends));
    MSC_TRY(choose_backends(m));
    MSC_TRY(find_groups(m));
    MSC_TRY(write_singles(m, "part"));
    MSC_TRY(join_groups(m));
    MSC_TRY(msc_place_table_create(out, m->n_groups, m->n_backends));
    enum msc_status status = fill_table(*out, m);
    if (status != MSC_OK) {
        msc_place_table_close(*out);
        *out = NULL;
    }
    return status;
}

enum msc_status msc_place_measure(struct msc_place_table **out, const struct msc_graph *g,
                                  const struct msc_place_options *o) {
    struct measure m = {.g = g, .o = o};
    enum msc_status status = measure_all(out, &m);
    msc_runtime_stop(m.runtime);
    msc_scratch_remove(&m.scratch);
    msc_arena_finish(&m.arena);
    return status;
}
