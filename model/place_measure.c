// Measures the table of placement: first each group in its place, to join neighbours that prefer
// the same backend, then every run of the groups that are left, then the best mixes as they are.
#include "base/file.h"
#include "base/str.h"
#include "graph/cost.h"
#include "graph/passes/chain.h"
#include "kernels/vulkan/vulkan.h"
#include "base/file_hash.h"
#include "model/place_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_ATOMS = 48, // groups that are measured before they are joined
    MOST_MIXES = 8,  // mixes that are measured as they are
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

// Lists every backend of this machine that is not slow, unless the options name some.
static enum msc_status choose_backends(struct msc_place_measure *m) {
    const struct msc_runtime_host *host = msc_runtime_host(m->runtime);
    size_t most = (m->o->n_backends + host->n_found + 2) * m->n_variants;
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
        const struct msc_runtime_found *f = &host->found[i];
        if (f->version && f->runs_chains && !f->is_slow) {
            m->backends[m->n_backends++] = f->name;
        }
    }
    if (m->o->n_backends == 0 && host->own.version) {
        m->backends[m->n_backends++] = "cpu";
        if (msc_vulkan_first_gpu() >= 0) {
            m->backends[m->n_backends++] = "vulkan";
        }
    }
    size_t n = m->n_backends;
    m->n_backends *= m->n_variants;
    for (size_t i = n; i < m->n_backends; i++) {
        m->backends[i] = m->backends[i - n];
    }
    return m->n_backends > 0 && m->n_backends <= MSC_PLACE_MOST_BACKENDS
               ? MSC_OK
               : MSC_FAIL(MSC_E_DEVICE,
                          "place: %zu backends with %zu variants of the network, expected 1 to %d "
                          "pairs of them",
                          n, m->n_variants, MSC_PLACE_MOST_BACKENDS);
}

static const char *backend_version(const struct msc_place_measure *m, const char *backend) {
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
static void join_alike(int32_t into[], double us[], const struct msc_place_measure *m,
                       size_t most) {
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

static enum msc_status align(struct msc_place_measure *m) {
    return msc_place_align(m->networks, m->paths, m->n_variants, m->n_groups, &m->arena);
}

static enum msc_status join_groups(struct msc_place_measure *m) {
    struct msc_place_tiling singly = {.n = m->n_groups};
    struct msc_place_table *p = NULL;
    size_t most = (size_t)m->o->most_groups, n = m->n_groups, k = m->n_backends;
    if (n <= most) {
        return MSC_OK;
    }
    double *us = msc_arena_array(&m->arena, n * k, sizeof *us);
    int32_t *into = msc_arena_array(&m->arena, n, sizeof *into);
    MSC_TRY(MSC_ALLOCATED(us && into));
    for (size_t i = 0; i <= n; i++) {
        singly.firsts[i] = i;
    }
    msc_log(m->o->log, MSC_LOG_INFO, "placement: %zu groups", n);
    MSC_TRY(msc_place__see(m, &singly));
    MSC_TRY(msc_place_table_create(&p, n, k));
    msc_place__conclude(p, m);
    for (size_t i = 0; i < n; i++) {
        into[i] = (int32_t)i;
        memcpy(&us[i * k], msc_place_table_us(p, i, i, 0), k * sizeof us[0]);
    }
    msc_place_table_close(p);
    join_alike(into, us, m, most);
    msc_graph_chain_join(m->groups, m->g, into);
    m->n_groups = most;
    MSC_TRY(align(m));
    MSC_TRY(msc_place__begin(m, "group"));
    return msc_place__see_whole(m);
}

// ---- The table --------------------------------------------------------------------------------

static enum msc_status describe_groups(struct msc_place_table *p,
                                       const struct msc_place_measure *m) {
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

static enum msc_status describe_variant(struct msc_place_variant *out, struct msc_place_table *p,
                                        const struct msc_place_measure *m, const char *path) {
    char text[MSC_HASH_TEXT_BYTES], *model;
    struct msc_hash hash;
    MSC_TRY(msc_file_hash(&hash, path));
    MSC_TRY(msc_path_relative(&model, &p->arena, path, m->o->folder));
    out->model = model;
    out->hash = msc_arena_strdup(&p->arena, msc_hash_format(text, hash));
    return MSC_ALLOCATED(out->hash);
}

static enum msc_status describe(struct msc_place_table *p, const struct msc_place_measure *m) {
    p->n_variants = m->n_variants;
    for (size_t i = 0; i < m->n_variants; i++) {
        MSC_TRY(describe_variant(&p->variants[i], p, m, m->paths[i]));
    }
    p->processor = msc_arena_strdup(&p->arena, msc_runtime_host(m->runtime)->processor);
    p->n_threads = m->o->n_threads;
    p->n_rounds = m->o->n_rounds;
    p->batch = m->o->batch;
    for (size_t i = 0; i < m->n_backends; i++) {
        p->backends[i].name = msc_arena_strdup(&p->arena, m->backends[i]);
        p->backends[i].version = msc_arena_strdup(&p->arena, backend_version(m, m->backends[i]));
        MSC_TRY(MSC_ALLOCATED(p->backends[i].name && p->backends[i].version));
        p->backends[i].variant = (uint32_t)(i / (m->n_backends / m->n_variants));
        MSC_TRY(msc_place_table_label(p, i));
    }
    MSC_TRY(MSC_ALLOCATED(p->processor));
    return describe_groups(p, m);
}

// The point of least predicted latency with more than one piece.
static enum msc_status best_mix(struct msc_place_table *p, const struct msc_place_measure *m,
                                uint32_t choices[]) {
    double wholes[MSC_PLACE_MOST_BACKENDS], us;
    bool is_cut_short;
    double *of_table = msc_place_table_us(p, 0, p->n_groups - 1, 0);
    memcpy(wholes, of_table, p->n_backends * sizeof wholes[0]);
    for (size_t b = 0; b < p->n_backends; b++) {
        of_table[b] = NAN;
    }
    enum msc_status status = msc_place_find(&us, &is_cut_short, m->g, p, choices, m->o);
    memcpy(of_table, wholes, p->n_backends * sizeof wholes[0]);
    return status;
}

// The best of many measured sums is too low, as it is chosen for being low. So the best mix is
// measured as it is, until the best mix is one that was just measured.
static enum msc_status measure_mixes(struct msc_place_table *p, struct msc_place_measure *m) {
    uint32_t mix[MSC_PLACE_MOST_GROUPS], last[MSC_PLACE_MOST_GROUPS];
    for (size_t i = 0; i < MOST_MIXES; i++) {
        enum msc_status status = best_mix(p, m, mix);
        if (status == MSC_E_NOT_FOUND ||
            (status == MSC_OK && i > 0 && memcmp(mix, last, p->n_groups * sizeof mix[0]) == 0)) {
            return MSC_OK;
        }
        MSC_TRY(status);
        msc_log(m->o->log, MSC_LOG_INFO, "placement: mix %zu", i);
        MSC_TRY(msc_place__see_point(p, m, mix));
        memcpy(last, mix, sizeof mix);
    }
    return MSC_OK;
}

static enum msc_status fill_table(struct msc_place_table *p, struct msc_place_measure *m) {
    struct msc_place_tiling tiling;
    for (size_t i = 1; msc_place__next(&tiling, m); i++) {
        msc_log(m->o->log, MSC_LOG_INFO, "placement: division %zu, %zu pieces", i, tiling.n);
        MSC_TRY(msc_place__see(m, &tiling));
    }
    msc_place__conclude(p, m);
    MSC_TRY(describe(p, m));
    return measure_mixes(p, m);
}

// Leaves out the cuts that a variant cannot have.
static enum msc_status keep_common_cuts(struct msc_place_measure *m, size_t n) {
    bool *is_cut = msc_arena_array(&m->arena, n, sizeof *is_cut);
    int32_t *into = msc_arena_array(&m->arena, n, sizeof *into), n_groups;
    MSC_TRY(MSC_ALLOCATED(is_cut && into));
    for (size_t i = 0; i < n; i++) {
        is_cut[i] = true;
    }
    for (size_t v = 1; v < m->n_variants; v++) {
        MSC_TRY(msc_place_cut_variant(&m->networks[v], is_cut, &m->networks[0], n, m->paths[v],
                                      &m->arena));
    }
    into[0] = 0;
    for (size_t i = 1; i < n; i++) {
        into[i] = into[i - 1] + is_cut[i - 1];
    }
    msc_graph_chain_join(m->groups, m->g, into);
    n_groups = into[n - 1] + 1;
    MSC_TRY(msc_graph_chain_limit(m->groups, &n_groups, m->g, MOST_ATOMS));
    m->n_groups = (size_t)n_groups;
    return align(m);
}

static enum msc_status find_groups(struct msc_place_measure *m) {
    int32_t n_groups = 0, most = m->n_variants > 1 ? INT32_MAX : MOST_ATOMS;
    m->groups =
        msc_arena_array(&m->arena, (size_t)msc_graph_n_joints(m->g) + 1, sizeof m->groups[0]);
    MSC_TRY(MSC_ALLOCATED(m->groups));
    MSC_TRY(msc_graph_chain(m->groups, &n_groups, m->g, most));
    m->n_groups = (size_t)n_groups;
    m->networks[0] = (struct msc_place_network){.g = m->g, .groups = m->groups};
    if (n_groups == 0) {
        return MSC_FAIL(MSC_E_INVALID, "%s: the network computes nothing", m->o->model);
    }
    return m->n_variants > 1 ? keep_common_cuts(m, m->n_groups) : MSC_OK;
}

// Lists the open lengths of inputs that no binding sets, except the number of samples.
static void list_open_lengths(struct msc_str *out, const struct msc_place_measure *m) {
    for (int32_t i = 0; i < msc_graph_n_prims(m->g); i++) {
        const struct msc_prim *prim = msc_graph_prim(m->g, i);
        bool is_set = i == msc_graph_sample_symbol(m->g) || strcmp(prim->optype, "shape") != 0;
        for (size_t b = 0; b < m->o->n_bindings; b++) {
            is_set = is_set || strcmp(m->o->bindings[b].symbol, prim->name) == 0;
        }
        if (!is_set) {
            msc_str_printf(out, "%s%s", out->length > 0 ? ", " : "", prim->name);
        }
    }
}

// A network may not run with random inputs, whose open lengths are 1. Then the error names the
// network's file and these lengths, not a temporary file.
static enum msc_status see_whole_first(struct msc_place_measure *m) {
    enum msc_status status = msc_place__see_whole(m);
    struct msc_str lengths = {0};
    if (status == MSC_OK || m->o->inputs) {
        return status;
    }
    list_open_lengths(&lengths, m);
    if (msc_str_status(&lengths) == MSC_OK && lengths.length > 0) {
        const char *reason = strstr(msc_status_message(), m->scratch.path);
        reason = reason ? strstr(reason, ".onnx: ") : NULL;
        reason =
            msc_arena_strdup(&m->arena, reason ? reason + strlen(".onnx: ") : msc_status_message());
        status = MSC_FAIL(status,
                          "%s: it cannot run with random inputs whose open lengths (%s) are 1; set "
                          "them, for example with --bind NAME=32, or give samples with --input: %s",
                          m->o->model, msc_str_text(&lengths), reason ? reason : "out of memory");
    }
    msc_str_finish(&lengths);
    return status;
}

static enum msc_status measure_all(struct msc_place_table **out, struct msc_place_measure *m) {
    MSC_TRY(msc_scratch_make(&m->scratch, &m->arena));
    MSC_TRY(msc_place__start(&m->runtime, m->o, m->o->backends, m->o->n_backends));
    MSC_TRY(choose_backends(m));
    MSC_TRY(find_groups(m));
    MSC_TRY(msc_place__begin(m, "part"));
    MSC_TRY(see_whole_first(m));
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
    struct msc_place_measure m = {.g = g, .o = o, .n_variants = 1 + o->n_variants};
    if (m.n_variants > MSC_PLACE_MOST_VARIANTS) {
        return MSC_FAIL(MSC_E_INVALID, "place: %zu variants, expected at most %d", o->n_variants,
                        MSC_PLACE_MOST_VARIANTS - 1);
    }
    if (isfinite(o->most_loss)) {
        size_t n;
        MSC_TRY(msc_place_count_combinations(&n, m.n_variants, (size_t)o->most_groups));
    }
    m.paths[0] = o->model;
    for (size_t i = 0; i < o->n_variants; i++) {
        m.networks[i + 1].g = o->variants[i].g;
        m.paths[i + 1] = o->variants[i].path;
    }
    enum msc_status status = measure_all(out, &m);
    msc_runtime_stop(m.runtime);
    msc_scratch_remove(&m.scratch);
    msc_arena_finish(&m.arena);
    return status;
}
