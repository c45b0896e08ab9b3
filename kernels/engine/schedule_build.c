#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

#include <string.h>

int32_t *msc_group_node(const struct msc_group *g, int32_t expr, int32_t batch) {
    // Packed weights serve every batch: their node stands under the window's first.
    bool is_shared = g->numbering.exprs[expr].kind == MSC_EXPR_WEIGHTS;
    int32_t column = is_shared ? 0 : g->columns[batch] - g->first_column;
    return &g->nodes[(size_t)expr * (size_t)g->n_columns + (size_t)column];
}

struct msc_node *msc_schedule_node(const struct msc_schedule *s, const struct msc_node *node,
                                   int32_t expr) {
    return &s->nodes[*msc_group_node(&s->groups[node->group], expr, node->batch)];
}

static enum msc_status add_node(struct msc_schedule *s, struct msc_node model, int32_t *id) {
    MSC_TRY(msc_grow(&s->nodes, &s->nodes_capacity, s->n_nodes + 1, sizeof(s->nodes[0])));
    model.first_edge = MSC_NO_ID;
    model.failure = MSC_NO_ID;
    s->nodes[s->n_nodes] = model;
    *id = (int32_t)s->n_nodes++;
    return MSC_OK;
}

// `user` reads `id`: it keeps the entry, and waits for it unless it is there already.
static enum msc_status add_use(struct msc_schedule *s, int32_t id, int32_t user) {
    struct msc_node *node = &s->nodes[id];
    node->n_users++;
    node->is_shared = node->is_shared || node->trial != s->trial_built;
    if (node->entry) {
        msc_cache_pin(node->entry, 1);
        return MSC_OK;
    }
    MSC_TRY(msc_grow(&s->edges, &s->edges_capacity, s->n_edges + 1, sizeof(s->edges[0])));
    s->edges[s->n_edges] = (struct msc_edge){user, s->nodes[id].first_edge};
    s->nodes[id].first_edge = (int32_t)s->n_edges++;
    s->nodes[user].n_pending++;
    return MSC_OK;
}

static enum msc_status add_root(struct msc_schedule *s, int32_t id) {
    MSC_TRY(msc_grow(&s->roots, &s->roots_capacity, s->n_roots + 1, sizeof(s->roots[0])));
    s->roots[s->n_roots++] = id;
    return MSC_OK;
}

static const struct msc_step *step_of(const struct msc_group *g, const struct msc_expr *expr) {
    return expr->kind == MSC_EXPR_STEP ? &g->numbering.plan->steps[expr->index] : NULL;
}

static enum msc_status push(struct msc_schedule *s, int32_t value) {
    MSC_TRY(msc_grow(&s->stack, &s->stack_capacity, s->n_stack + 1, sizeof(s->stack[0])));
    s->stack[s->n_stack++] = value;
    return MSC_OK;
}

// Gives an expression a node that holds its cached entry at once; *found: there is one.
static enum msc_status find_cached(struct msc_schedule *s, int32_t group, int32_t id, int32_t batch,
                                   bool *found) {
    struct msc_group *g = &s->groups[group];
    const struct msc_expr *expr = &g->numbering.exprs[id];
    struct msc_node model = {.expr = id, .group = group, .batch = batch, .trial = s->trial_built};
    *found = false;
    if (s->is_fresh && expr->kind != MSC_EXPR_WEIGHTS) {
        return MSC_OK;
    }
    model.entry = msc_cache_find(s->cache, msc_schedule_key(expr, batch));
    if (model.entry) {
        enum msc_status status = add_node(s, model, msc_group_node(g, id, batch));
        if (status != MSC_OK) {
            msc_cache_unpin(s->cache, model.entry);
            return status;
        }
        *found = true;
    }
    return MSC_OK;
}

// Makes the node of an expression whose inputs have nodes already.
static enum msc_status make_node(struct msc_schedule *s, int32_t group, int32_t id, int32_t batch) {
    struct msc_group *g = &s->groups[group];
    const struct msc_expr *expr = &g->numbering.exprs[id];
    struct msc_node model = {.expr = id, .group = group, .batch = batch, .trial = s->trial_built};
    int32_t node;
    MSC_TRY(add_node(s, model, &node));
    *msc_group_node(g, id, batch) = node;
    for (int32_t i = 0; i < expr->n_inputs; i++) {
        int32_t input = g->numbering.inputs[expr->first_input + i].expr;
        MSC_TRY(add_use(s, *msc_group_node(g, input, batch), node));
    }
    if (expr->weights != MSC_NO_ID) {
        MSC_TRY(add_use(s, *msc_group_node(g, expr->weights, batch), node));
    }
    const struct msc_step *step = step_of(g, expr);
    s->steps_run += step != NULL;
    s->macs_run += step ? step->macs : 0;
    return s->nodes[node].n_pending == 0 ? add_root(s, node) : MSC_OK;
}

static enum msc_status make_sink_node(struct msc_schedule *s, int32_t group, size_t trial,
                                      int32_t batch, int32_t first_target, int32_t n_targets) {
    struct msc_group *g = &s->groups[group];
    const struct msc_value_number *targets = &g->targets[trial * (size_t)s->n_targets];
    struct msc_node model = {.expr = MSC_NO_ID,
                             .group = group,
                             .batch = batch,
                             .trial = (int32_t)trial,
                             .first_target = first_target,
                             .n_targets = n_targets};
    int32_t node;
    MSC_TRY(add_node(s, model, &node));
    for (int32_t i = first_target; i < first_target + n_targets; i++) {
        if (targets[i].expr != MSC_NO_ID) {
            MSC_TRY(add_use(s, *msc_group_node(g, targets[i].expr, batch), node));
        }
    }
    return s->nodes[node].n_pending == 0 ? add_root(s, node) : MSC_OK;
}

static enum msc_status push_inputs(struct msc_schedule *s, const struct msc_group *g, int32_t id,
                                   int32_t batch) {
    const struct msc_expr *expr = &g->numbering.exprs[id];
    for (int32_t i = expr->n_inputs; i >= 0; i--) {
        int32_t input =
            i < expr->n_inputs ? g->numbering.inputs[expr->first_input + i].expr : expr->weights;
        if (input != MSC_NO_ID && *msc_group_node(g, input, batch) == MSC_NO_ID) {
            MSC_TRY(push(s, input));
        }
    }
    return MSC_OK;
}

// Makes nodes for an expression and all it needs, depth first, stopping at what has a node already
// or is in the cache. One on the stack whose inputs were pushed above it stands as its complement.
static enum msc_status need_expr(struct msc_schedule *s, int32_t group, int32_t expr,
                                 int32_t batch) {
    const struct msc_group *g = &s->groups[group];
    s->n_stack = 0;
    MSC_TRY(push(s, expr));
    while (s->n_stack > 0) {
        int32_t top = s->stack[s->n_stack - 1];
        int32_t id = top < 0 ? ~top : top;
        bool is_done = *msc_group_node(g, id, batch) != MSC_NO_ID;
        if (!is_done && top >= 0) {
            MSC_TRY(find_cached(s, group, id, batch, &is_done));
        } else if (!is_done) {
            MSC_TRY(make_node(s, group, id, batch));
            is_done = true;
        }
        if (is_done) {
            s->n_stack--;
        } else {
            s->stack[s->n_stack - 1] = ~id;
            MSC_TRY(push_inputs(s, g, id, batch));
        }
    }
    return MSC_OK;
}

static enum msc_status build_trial(struct msc_schedule *s, int32_t group, size_t trial,
                                   int32_t batch) {
    const struct msc_value_number *targets =
        &s->groups[group].targets[trial * (size_t)s->n_targets];
    s->trial_built = (int32_t)trial;
    for (int32_t i = 0; i < s->n_wanted; i++) {
        if (targets[i].expr != MSC_NO_ID) {
            MSC_TRY(need_expr(s, group, targets[i].expr, batch));
        }
    }
    MSC_TRY(make_sink_node(s, group, trial, batch, 0, s->n_wanted));
    for (int32_t i = s->n_wanted; i < s->n_targets; i++) {
        if (targets[i].expr != MSC_NO_ID) {
            MSC_TRY(need_expr(s, group, targets[i].expr, batch));
            MSC_TRY(make_sink_node(s, group, trial, batch, i, 1));
        }
    }
    return MSC_OK;
}

// May the step make this user itself? Noise is added to what is stored.
static bool can_fuse(const struct msc_schedule *s, const struct msc_node *user) {
    const struct msc_expr *expr = user->expr == MSC_NO_ID ? NULL : msc_node_expr(s, user);
    return expr && expr->kind == MSC_EXPR_QUANTIZE && expr->noise_seed == 0;
}

static void fuse_users(struct msc_schedule *s, struct msc_node *node) {
    const struct msc_backend_def *def = s->backend->def;
    if (node->expr == MSC_NO_ID || node->entry || !def->quantizes) {
        return;
    }
    const struct msc_step *step = step_of(&s->groups[node->group], msc_node_expr(s, node));
    if (!step || step->n_outputs != 1 || !def->quantizes(s->backend, step)) {
        return;
    }
    for (int32_t e = node->first_edge; e != MSC_NO_ID; e = s->edges[e].next) {
        struct msc_node *user = &s->nodes[s->edges[e].node];
        user->is_fused = can_fuse(s, user);
        node->n_fused += user->is_fused;
    }
}

// The sink nodes that each trial gets, over all batches.
static int64_t count_sinks(const struct msc_schedule *s) {
    int64_t n = 0;
    for (int i = 0; i < s->n_groups; i++) {
        const struct msc_group *g = &s->groups[i];
        int64_t of_batch = 1;
        for (int32_t t = s->n_wanted; t < s->n_targets; t++) {
            of_batch += g->targets[t].expr != MSC_NO_ID;
        }
        n += of_batch * g->n_batches;
    }
    return n;
}

enum msc_status msc_schedule_begin(struct msc_schedule *s) {
    int64_t n_sinks = count_sinks(s);
    MSC_TRY(msc_grow(&s->progress, &s->progress_capacity, s->n_trials + 1, sizeof(s->progress[0])));
    for (size_t t = 0; t < s->n_trials; t++) {
        s->progress[t] = (struct msc_progress){.sinks_left = n_sinks, .failed_batch = MSC_NO_ID};
        s->trials[t].status = MSC_OK;
        s->trials[t].message[0] = '\0';
        s->trials[t].reuse_ratio = 0;
    }
    return MSC_OK;
}

static enum msc_status prepare_group(struct msc_schedule *s, struct msc_group *g) {
    g->first_column = g->n_columns = 0;
    for (int32_t b = 0; b < g->n_batches; b++) {
        g->first_column += g->batches[b] < s->first_batch;
        g->n_columns += g->batches[b] >= s->first_batch && g->batches[b] < s->end_batch;
    }
    size_t n = g->numbering.n_exprs * (size_t)g->n_columns;
    MSC_TRY(msc_grow(&g->nodes, &g->nodes_capacity, n + 1, sizeof(g->nodes[0])));
    memset(g->nodes, 0xff, n * sizeof(g->nodes[0]));
    return MSC_OK;
}

static enum msc_status prepare(struct msc_schedule *s) {
    s->n_nodes = s->n_edges = s->n_ready = s->n_roots = s->next_root = s->n_done = 0;
    MSC_TRY(msc_grow(&s->failures, &s->failures_capacity, 1, sizeof(s->failures[0])));
    s->failures[0] = (struct msc_failure){INT32_MAX, MSC_E_NOMEM, "out of memory"};
    s->n_failures = 1;
    for (int i = 0; i < s->n_groups; i++) {
        MSC_TRY(prepare_group(s, &s->groups[i]));
    }
    return MSC_OK;
}

// Lets go of what the nodes of a build that failed have pinned.
static void abandon(struct msc_schedule *s) {
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct msc_node *node = &s->nodes[i];
        for (int32_t pins = node->entry ? node->n_users + 1 : 0; pins > 0; pins--) {
            msc_cache_unpin(s->cache, node->entry);
        }
    }
    s->n_nodes = 0;
}

static enum msc_status build_group(struct msc_schedule *s, int32_t group) {
    struct msc_group *g = &s->groups[group];
    for (int32_t b = g->first_column; b < g->first_column + g->n_columns; b++) {
        for (size_t t = 0; t < s->n_trials; t++) {
            struct msc_progress *progress = &s->progress[t];
            double macs_before = s->macs_run;
            uint64_t steps_before = s->steps_run;
            if (progress->is_over) {
                continue;
            }
            MSC_TRY(build_trial(s, group, t, g->batches[b]));
            progress->macs_run += s->macs_run - macs_before;
            progress->macs_asked += g->macs_asked;
            s->macs_asked += g->macs_asked;
            uint64_t asked = (uint64_t)g->n_steps_asked, run = s->steps_run - steps_before;
            // Some are run for several quantisations.
            s->steps_reused += asked > run ? asked - run : 0;
        }
    }
    return MSC_OK;
}

enum msc_status msc_schedule_build(struct msc_schedule *s) {
    enum msc_status status = prepare(s);
    for (int32_t i = 0; status == MSC_OK && i < s->n_groups; i++) {
        status = build_group(s, i);
    }
    if (status == MSC_OK) {
        status = msc_grow(&s->ready, &s->ready_capacity, s->n_nodes + 1, sizeof(s->ready[0]));
    }
    if (status != MSC_OK) {
        abandon(s);
        return status;
    }
    // From here on the readers' pins alone hold what was found in the cache.
    for (size_t i = 0; i < s->n_nodes; i++) {
        fuse_users(s, &s->nodes[i]);
        if (s->nodes[i].entry) {
            msc_cache_unpin(s->cache, s->nodes[i].entry);
            s->n_done++;
        }
    }
    return MSC_OK;
}
