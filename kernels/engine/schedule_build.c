#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

#include <string.h>

static enum msc_status schedule_build_add_node(struct msc_schedule *s, struct msc_node model,
                                               int32_t *id) {
    MSC_TRY(msc_grow(&s->nodes, &s->nodes_capacity, s->n_nodes + 1, sizeof(s->nodes[0])));
    model.first_edge = MSC_NO_ID;
    model.failure = MSC_NO_ID;
    s->nodes[s->n_nodes] = model;
    *id = (int32_t)s->n_nodes++;
    return MSC_OK;
}

// Records that node `user` reads node `id`. If the result of `id` is cached, pins its entry;
// otherwise makes `user` wait for `id`.
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

enum msc_status msc_schedule__push_id(struct msc_id_list *list, int32_t id) {
    MSC_TRY(msc_grow(&list->items, &list->capacity, list->n + 1, sizeof(list->items[0])));
    list->items[list->n++] = id;
    return MSC_OK;
}

static const struct msc_step *step_of(const struct msc_scheduled_plan *p,
                                      const struct msc_expr *expr) {
    return expr->kind == MSC_EXPR_STEP ? &p->plan->steps[expr->index] : NULL;
}

// If the result of an expression is cached, makes a node that has its entry, and sets *found.
static enum msc_status find_cached(struct msc_schedule *s, int32_t plan, int32_t id, int32_t batch,
                                   bool *found) {
    struct msc_scheduled_plan *p = &s->plans[plan];
    const struct msc_expr *expr = &p->numbering.exprs[id];
    struct msc_node model = {.expr = id, .plan = plan, .batch = batch, .trial = s->trial_built};
    *found = false;
    if (msc_schedule__is_fresh(s) && expr->kind != MSC_EXPR_WEIGHTS) {
        return MSC_OK;
    }
    model.entry = msc_cache_find(s->options.cache, msc_schedule__key(expr, batch));
    if (model.entry) {
        enum msc_status status =
            schedule_build_add_node(s, model, msc_schedule__place(s, p, id, batch));
        if (status != MSC_OK) {
            msc_cache_unpin(s->options.cache, model.entry);
            return status;
        }
        *found = true;
    }
    return MSC_OK;
}

// Makes the node of an expression whose inputs already have nodes.
static enum msc_status make_node(struct msc_schedule *s, int32_t plan, int32_t id, int32_t batch) {
    struct msc_scheduled_plan *p = &s->plans[plan];
    const struct msc_expr *expr = &p->numbering.exprs[id];
    struct msc_node model = {.expr = id, .plan = plan, .batch = batch, .trial = s->trial_built};
    int32_t node;
    MSC_TRY(schedule_build_add_node(s, model, &node));
    *msc_schedule__place(s, p, id, batch) = node;
    for (int32_t i = 0; i < expr->n_inputs; i++) {
        int32_t input = p->numbering.inputs[expr->first_input + i].expr;
        MSC_TRY(add_use(s, *msc_schedule__place(s, p, input, batch), node));
    }
    if (expr->weights != MSC_NO_ID) {
        MSC_TRY(add_use(s, *msc_schedule__place(s, p, expr->weights, batch), node));
    }
    const struct msc_step *step = step_of(p, expr);
    s->stats.steps_run += step != NULL;
    s->stats.macs_run += step ? step->macs : 0;
    return s->nodes[node].n_pending == 0 ? msc_schedule__push_id(&s->roots, node) : MSC_OK;
}

static enum msc_status make_sink_node(struct msc_schedule *s, int32_t plan, size_t trial,
                                      int32_t batch, int32_t first_target, int32_t n_targets) {
    struct msc_scheduled_plan *p = &s->plans[plan];
    const struct msc_value_number *targets = msc_schedule__targets(s, p, trial);
    struct msc_node model = {.expr = MSC_NO_ID,
                             .plan = plan,
                             .batch = batch,
                             .trial = (int32_t)trial,
                             .first_target = first_target,
                             .n_targets = n_targets};
    int32_t node;
    MSC_TRY(schedule_build_add_node(s, model, &node));
    for (int32_t i = first_target; i < first_target + n_targets; i++) {
        if (targets[i].expr != MSC_NO_ID) {
            MSC_TRY(add_use(s, *msc_schedule__place(s, p, targets[i].expr, batch), node));
        }
    }
    return s->nodes[node].n_pending == 0 ? msc_schedule__push_id(&s->roots, node) : MSC_OK;
}

static enum msc_status push_inputs(struct msc_schedule *s, const struct msc_scheduled_plan *p,
                                   int32_t id, int32_t batch) {
    const struct msc_expr *expr = &p->numbering.exprs[id];
    for (int32_t i = expr->n_inputs; i >= 0; i--) {
        int32_t input =
            i < expr->n_inputs ? p->numbering.inputs[expr->first_input + i].expr : expr->weights;
        if (input != MSC_NO_ID && *msc_schedule__place(s, p, input, batch) == MSC_NO_ID) {
            MSC_TRY(msc_schedule__push_id(&s->stack, input));
        }
    }
    return MSC_OK;
}

// Makes nodes for an expression and everything it needs, depth first. Stops at expressions that
// have nodes or are cached. The stack holds expression ids; the complement ~id marks an expression
// whose inputs have already been pushed.
static enum msc_status need_expr(struct msc_schedule *s, int32_t plan, int32_t expr,
                                 int32_t batch) {
    const struct msc_scheduled_plan *p = &s->plans[plan];
    s->stack.n = 0;
    MSC_TRY(msc_schedule__push_id(&s->stack, expr));
    while (s->stack.n > 0) {
        int32_t top = s->stack.items[s->stack.n - 1];
        int32_t id = top < 0 ? ~top : top;
        bool is_done = *msc_schedule__place(s, p, id, batch) != MSC_NO_ID;
        if (!is_done && top >= 0) {
            MSC_TRY(find_cached(s, plan, id, batch, &is_done));
        } else if (!is_done) {
            MSC_TRY(make_node(s, plan, id, batch));
            is_done = true;
        }
        if (is_done) {
            s->stack.n--;
        } else {
            s->stack.items[s->stack.n - 1] = ~id;
            MSC_TRY(push_inputs(s, p, id, batch));
        }
    }
    return MSC_OK;
}

static enum msc_status build_trial(struct msc_schedule *s, int32_t plan, size_t trial,
                                   int32_t batch) {
    const struct msc_value_number *targets = msc_schedule__targets(s, &s->plans[plan], trial);
    s->trial_built = (int32_t)trial;
    for (int32_t i = 0; i < s->n_live_out; i++) {
        if (targets[i].expr != MSC_NO_ID) {
            MSC_TRY(need_expr(s, plan, targets[i].expr, batch));
        }
    }
    MSC_TRY(make_sink_node(s, plan, trial, batch, 0, s->n_live_out));
    for (int32_t i = s->n_live_out; i < s->n_targets; i++) {
        if (targets[i].expr != MSC_NO_ID) {
            MSC_TRY(need_expr(s, plan, targets[i].expr, batch));
            MSC_TRY(make_sink_node(s, plan, trial, batch, i, 1));
        }
    }
    return MSC_OK;
}

// True if the step can compute this quantisation of its output itself. It cannot if there is noise,
// because noise is added to stored values. It also cannot if there is a scale per channel, because
// steps do not know where channels are in memory.
static bool can_fuse(const struct msc_schedule *s, const struct msc_node *user) {
    const struct msc_expr *expr = user->expr == MSC_NO_ID ? NULL : msc_schedule__expr(s, user);
    return expr && expr->kind == MSC_EXPR_QUANTIZE && expr->noise_seed == 0 &&
           !msc_quant_is_by_channel(expr->edit) && !expr->edit->is_dynamic;
}

static void fuse_users(struct msc_schedule *s, struct msc_node *node) {
    const struct msc_backend_def *def = s->options.backend->def;
    if (node->expr == MSC_NO_ID || node->entry || !def->quantizes) {
        return;
    }
    const struct msc_expr *expr = msc_schedule__expr(s, node);
    const struct msc_step *step = step_of(&s->plans[node->plan], expr);
    // A step with an `edit` moves integers and writes only integers: nothing can be fused into it.
    if (!step || expr->edit || step->n_outputs != 1 || !def->quantizes(s->options.backend, step)) {
        return;
    }
    for (int32_t e = node->first_edge; e != MSC_NO_ID; e = s->edges[e].next) {
        struct msc_node *user = &s->nodes[s->edges[e].node];
        user->is_fused = can_fuse(s, user);
        node->n_fused += user->is_fused;
    }
}

static enum msc_status prepare_plan(struct msc_schedule *s, struct msc_scheduled_plan *p) {
    p->first_column = p->n_columns = 0;
    for (int32_t b = 0; b < p->n_batches; b++) {
        p->first_column += p->batches[b] < s->first_batch;
        p->n_columns += p->batches[b] >= s->first_batch && p->batches[b] < s->end_batch;
    }
    size_t n = p->numbering.n_exprs * (size_t)p->n_columns;
    MSC_TRY(msc_grow(&p->nodes, &p->nodes_capacity, n + 1, sizeof(p->nodes[0])));
    memset(p->nodes, 0xff, n * sizeof(p->nodes[0]));
    return MSC_OK;
}

static enum msc_status prepare_window(struct msc_schedule *s) {
    s->n_nodes = s->n_edges = s->ready.n = s->roots.n = s->next_root = s->n_done = 0;
    MSC_TRY(msc_grow(&s->failures, &s->failures_capacity, 1, sizeof(s->failures[0])));
    s->failures[0] = (struct msc_failure){INT32_MAX, MSC_E_NOMEM, "out of memory"};
    s->n_failures = 1;
    for (int i = 0; i < s->options.n_plans; i++) {
        MSC_TRY(prepare_plan(s, &s->plans[i]));
    }
    return MSC_OK;
}

// Releases the cache entries that a failed build of a window has pinned.
static void abandon_window(struct msc_schedule *s) {
    for (size_t i = 0; i < s->n_nodes; i++) {
        struct msc_node *node = &s->nodes[i];
        for (int32_t pins = node->entry ? node->n_users + 1 : 0; pins > 0; pins--) {
            msc_cache_unpin(s->options.cache, node->entry);
        }
    }
    s->n_nodes = 0;
}

static enum msc_status build_plan(struct msc_schedule *s, int32_t plan) {
    struct msc_scheduled_plan *p = &s->plans[plan];
    for (int32_t b = p->first_column; b < p->first_column + p->n_columns; b++) {
        for (size_t t = 0; t < s->job.n_trials; t++) {
            struct msc_progress *progress = &s->progress[t];
            double macs_before = s->stats.macs_run;
            uint64_t steps_before = s->stats.steps_run;
            if (progress->is_over) {
                continue;
            }
            MSC_TRY(build_trial(s, plan, t, p->batches[b]));
            progress->macs_run += s->stats.macs_run - macs_before;
            progress->macs_asked += p->macs_asked;
            s->stats.macs_asked += p->macs_asked;
            uint64_t asked = (uint64_t)p->n_steps_asked, run = s->stats.steps_run - steps_before;
            // `run` may exceed `asked`: a step that moves integers runs once per quantisation.
            s->stats.steps_reused += asked > run ? asked - run : 0;
        }
    }
    return MSC_OK;
}

// Will no later call read the result of this node? Known only of calls that go onward.
static bool is_spent(const struct msc_schedule *s, const struct msc_node *node) {
    return msc_schedule__is_onward(s) && msc_schedule__expr(s, node)->kind != MSC_EXPR_WEIGHTS &&
           !s->plans[node->plan].is_awaited[node->expr];
}

enum msc_status msc_schedule__build(struct msc_schedule *s) {
    enum msc_status status = prepare_window(s);
    for (int32_t i = 0; status == MSC_OK && i < s->options.n_plans; i++) {
        status = build_plan(s, i);
    }
    status = status == MSC_OK ? msc_schedule__find_awaited(s) : status;
    if (status == MSC_OK) {
        status = msc_grow(&s->ready.items, &s->ready.capacity, s->n_nodes + 1,
                          sizeof(s->ready.items[0]));
    }
    if (status != MSC_OK) {
        abandon_window(s);
        return status;
    }
    // Nodes that read cached entries have their own pins, so the pins of find_cached are dropped.
    for (size_t i = 0; i < s->n_nodes; i++) {
        fuse_users(s, &s->nodes[i]);
        if (s->nodes[i].entry) {
            s->nodes[i].entry->is_brief = is_spent(s, &s->nodes[i]);
            msc_cache_unpin(s->options.cache, s->nodes[i].entry);
            s->n_done++;
        }
    }
    return MSC_OK;
}
