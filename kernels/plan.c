#include "kernels/plan_internal.h"

#include "base/alloc.h"
#include "graph/cost.h"
#include "kernels/backend.h"

#include <assert.h>
#include <string.h>

enum { MAX_FUSED = 32 }; // joints in one step

// What planning keeps by the side until the plan is done.
struct planner {
    struct msc_plan *plan;
    const struct msc_graph *graph;
    struct msc_backend *backend;
    struct msc_arena *arena;  // the plan's
    struct msc_arena scratch; // until planning ends
    const struct msc_plan_origin *origin;
    bool *is_kept;          // [n_tensors] read by slots or sinks
    bool *is_planned;       // [n_joints] in a step already, or in the tail
    bool *in_tail;          // [n_joints]; the plan's
    int32_t (*value_of)[2]; // [n_tensors][layout] value id or MSC_NO_ID
    int32_t **members;      // [n_joints] joints of the step that this joint ends
    int32_t *n_members;     // [n_joints]
    size_t values_capacity, steps_capacity;
};

static bool is_source(const struct msc_joint *j) {
    return j->op == MSC_OP_INPUT || j->op == MSC_OP_CONSTANT;
}

// ---- The tail ---------------------------------------------------------------------------------

static bool is_in_tail(const struct planner *p, const struct msc_joint *j) {
    for (int32_t i = 0; i < j->n_outputs; i++) {
        if (msc_tensor_n_elements(msc_graph_tensor(p->graph, j->outputs[i])) <= 0) {
            return true;
        }
    }
    for (int32_t i = 0; i < j->n_operands; i++) {
        if (j->operands[i] == MSC_NO_ID ||
            msc_graph_weight_of(p->graph, j->operands[i]) != MSC_NO_ID) {
            continue;
        }
        const struct msc_tensor *t = msc_graph_tensor(p->graph, j->operands[i]);
        if (msc_tensor_n_elements(t) <= 0 || p->in_tail[t->producer]) {
            return true;
        }
    }
    return false;
}

static void find_tail(struct planner *p) {
    for (int32_t i = 0; i < msc_graph_n_joints(p->graph); i++) {
        const struct msc_joint *j = msc_graph_joint(p->graph, i);
        p->in_tail[i] = !is_source(j) && is_in_tail(p, j);
        p->is_planned[i] = p->in_tail[i];
    }
}

// Is there a value of it that steps make, or an input with elements?
static bool is_made(const struct planner *p, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(p->graph, tensor);
    return msc_graph_weight_of(p->graph, tensor) == MSC_NO_ID && !p->in_tail[t->producer] &&
           msc_tensor_n_elements(t) > 0;
}

// ---- Grouping ---------------------------------------------------------------------------------

static bool in_group(const int32_t group[], int n, int32_t joint) {
    for (int i = 0; i < n; i++) {
        if (group[i] == joint) {
            return true;
        }
    }
    return false;
}

// The earliest joint outside the group that reads a tensor of it; MSC_NO_ID when there is none.
static int32_t next_reader(const struct planner *p, const int32_t group[], int n) {
    int32_t best = MSC_NO_ID;
    for (int i = 0; i < n; i++) {
        const int32_t *readers;
        int32_t output = msc_graph_joint(p->graph, group[i])->outputs[0];
        int32_t n_readers = msc_graph_consumers(p->graph, output, &readers);
        for (int32_t r = 0; r < n_readers; r++) {
            if (!in_group(group, n, readers[r]) && (best == MSC_NO_ID || readers[r] < best)) {
                best = readers[r];
            }
        }
    }
    return best;
}

// Nothing of the group but its last output is needed outside.
static bool is_closed(const struct planner *p, const int32_t group[], int n) {
    for (int i = 0; i + 1 < n; i++) {
        const int32_t *readers;
        int32_t output = msc_graph_joint(p->graph, group[i])->outputs[0];
        int32_t n_readers = msc_graph_consumers(p->graph, output, &readers);
        if (p->is_kept[output]) {
            return false;
        }
        for (int32_t r = 0; r < n_readers; r++) {
            if (!in_group(group, n, readers[r])) {
                return false;
            }
        }
    }
    return true;
}

static bool has_shape_of(const struct planner *p, const struct msc_joint *anchor,
                         const struct msc_joint *joint) {
    const struct msc_tensor *a = msc_graph_tensor(p->graph, anchor->outputs[0]);
    const struct msc_tensor *b = msc_graph_tensor(p->graph, joint->outputs[0]);
    return a->n_dims == b->n_dims && a->dtype == b->dtype &&
           memcmp(a->dims, b->dims, sizeof(a->dims[0]) * (size_t)a->n_dims) == 0;
}

// Grows a group from its anchor, joint by joint in topological order, and returns the length of the
// longest prefix that is closed. Since only the last output of a closed group leaves it, no path
// from the group can come back in through another operand.
static int grow_group(const struct planner *p, int32_t group[MAX_FUSED]) {
    const struct msc_joint *anchor = msc_graph_joint(p->graph, group[0]);
    int n = 1;
    int closed = 1;
    while (n < MAX_FUSED && anchor->n_outputs == 1) {
        int32_t next = next_reader(p, group, n);
        if (next == MSC_NO_ID || p->is_planned[next]) {
            break;
        }
        const struct msc_joint *joint = msc_graph_joint(p->graph, next);
        if (joint->n_outputs != 1 || joint->n_operands > MSC_MAX_DIMS ||
            !has_shape_of(p, anchor, joint) ||
            !p->backend->def->fuses(p->backend, p->graph, anchor, joint)) {
            break;
        }
        group[n++] = next;
        closed = is_closed(p, group, n) ? n : closed;
    }
    return closed;
}

static enum msc_status group_joints(struct planner *p) {
    int32_t n = msc_graph_n_joints(p->graph);
    for (int32_t i = 0; i < n; i++) {
        if (p->is_planned[i] || is_source(msc_graph_joint(p->graph, i))) {
            continue;
        }
        int32_t group[MAX_FUSED] = {i};
        int length = grow_group(p, group);
        int32_t last = group[length - 1];
        p->members[last] = msc_arena_array(&p->scratch, (size_t)length, sizeof(int32_t));
        if (!p->members[last]) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
        }
        p->n_members[last] = length;
        for (int k = 0; k < length; k++) {
            p->members[last][k] = group[k];
            p->is_planned[group[k]] = true;
        }
    }
    return MSC_OK;
}

// ---- Values and steps -------------------------------------------------------------------------

static enum msc_status add_value(struct planner *p, int32_t tensor, enum msc_layout layout,
                                 int32_t step, int32_t output, int32_t *out) {
    struct msc_plan *plan = p->plan;
    MSC_TRY(msc_grow(&plan->values, &p->values_capacity, (size_t)plan->n_values + 1,
                     sizeof(plan->values[0])));
    const struct msc_tensor *t = msc_graph_tensor(p->graph, tensor);
    struct msc_value *v = &plan->values[plan->n_values];
    *v = (struct msc_value){.tensor = tensor,
                            .layout = layout,
                            .dtype = t->dtype,
                            .n_dims = t->n_dims,
                            .step = step,
                            .output = output,
                            .input = MSC_NO_ID};
    memcpy(v->dims, t->dims, sizeof(v->dims));
    v->n_bytes = (size_t)msc_dims_product(t->n_dims, t->dims) * msc_dtype_bytes(t->dtype);
    p->value_of[tensor][layout] = plan->n_values;
    *out = plan->n_values++;
    return MSC_OK;
}

static enum msc_status add_step(struct planner *p, enum msc_step_kind kind, int32_t n_inputs,
                                int32_t n_outputs, struct msc_step **out) {
    struct msc_plan *plan = p->plan;
    MSC_TRY(msc_grow(&plan->steps, &p->steps_capacity, (size_t)plan->n_steps + 1,
                     sizeof(plan->steps[0])));
    struct msc_step *s = &plan->steps[plan->n_steps];
    int32_t *ids =
        msc_arena_array(p->arena, (size_t)(2 * n_inputs + n_outputs) + 1, sizeof(int32_t));
    if (!ids) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
    }
    *s = (struct msc_step){.kind = kind,
                           .n_inputs = n_inputs,
                           .inputs = ids,
                           .slots = ids + n_inputs,
                           .n_outputs = n_outputs,
                           .outputs = ids + 2 * n_inputs};
    memset(ids, 0xff, sizeof(int32_t) * (size_t)(2 * n_inputs + n_outputs));
    plan->n_steps++;
    *out = s;
    return MSC_OK;
}

static int32_t *step_inputs(const struct msc_step *s) {
    return (int32_t *)s->inputs; // the arena's, written while the plan is made
}

// The value of a tensor in a layout, by a reorder step when it only exists in the other one.
static enum msc_status value_in(struct planner *p, int32_t tensor, enum msc_layout layout,
                                int32_t *out) {
    enum msc_layout other = layout == MSC_LAYOUT_PLAIN ? MSC_LAYOUT_LAST : MSC_LAYOUT_PLAIN;
    struct msc_step *s;
    if (p->value_of[tensor][layout] != MSC_NO_ID) {
        *out = p->value_of[tensor][layout];
        return MSC_OK;
    }
    int32_t from = p->value_of[tensor][other];
    assert(from != MSC_NO_ID);
    MSC_TRY(add_step(p, MSC_STEP_REORDER, 1, 1, &s));
    int32_t step = p->plan->n_steps - 1;
    MSC_TRY(add_value(p, tensor, layout, step, 0, out));
    s = &p->plan->steps[step];
    step_inputs(s)[0] = from;
    ((int32_t *)s->outputs)[0] = *out;
    return MSC_OK;
}

struct gathered {
    struct msc_step_joint *joints;
    int32_t tensors[MSC_STEP_MAX_INPUTS]; // step inputs
    int32_t slots[MSC_STEP_MAX_INPUTS];
    int32_t n;
    int32_t n_weight_slots;
    int32_t weight_slots[MSC_STEP_MAX_WEIGHTS], weight_operands[MSC_STEP_MAX_WEIGHTS];
};

// An input is shared by operands that read the same tensor through the same slot.
static enum msc_status gather_input(struct gathered *g, const struct msc_joint *j, int32_t tensor,
                                    int32_t slot, int32_t *index) {
    for (int32_t i = 0; i < g->n; i++) {
        if (g->tensors[i] == tensor && g->slots[i] == slot) {
            *index = i;
            return MSC_OK;
        }
    }
    if (g->n == MSC_STEP_MAX_INPUTS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "joint %s: more than %d inputs", j->name,
                        MSC_STEP_MAX_INPUTS);
    }
    g->tensors[g->n] = tensor;
    g->slots[g->n] = slot;
    *index = g->n++;
    return MSC_OK;
}

static enum msc_status gather_operand(struct planner *p, struct gathered *g,
                                      const int32_t members[], int k, int32_t position,
                                      struct msc_operand *out) {
    const struct msc_joint *j = msc_graph_joint(p->graph, members[k]);
    int32_t tensor = j->operands[position];
    if (tensor == MSC_NO_ID) {
        out->kind = MSC_OPERAND_NONE;
        return MSC_OK;
    }
    int32_t slot = msc_plan_find_slot(p->plan, members[k], position);
    int32_t weight = msc_graph_weight_of(p->graph, tensor);
    if (weight != MSC_NO_ID) {
        if (!msc_graph_tensor(p->graph, weight)->data) {
            return MSC_FAIL(MSC_E_INVALID, "weight %s has no elements: the model came without",
                            msc_graph_tensor(p->graph, weight)->name);
        }
        *out = (struct msc_operand){MSC_OPERAND_WEIGHT, weight};
        if (slot != MSC_NO_ID) {
            if (g->n_weight_slots == MSC_STEP_MAX_WEIGHTS) {
                return MSC_FAIL(MSC_E_UNSUPPORTED, "more than %d weights of one step are sites: %s",
                                MSC_STEP_MAX_WEIGHTS, msc_graph_tensor(p->graph, weight)->name);
            }
            g->weight_operands[g->n_weight_slots] = position;
            g->weight_slots[g->n_weight_slots++] = slot;
        }
        return MSC_OK;
    }
    for (int inner = 0; inner < k; inner++) {
        if (msc_graph_joint(p->graph, members[inner])->outputs[0] == tensor) {
            *out = (struct msc_operand){MSC_OPERAND_INNER, inner};
            return MSC_OK;
        }
    }
    out->kind = MSC_OPERAND_INPUT;
    return gather_input(g, j, tensor, slot, &out->index);
}

static enum msc_status gather_step(struct planner *p, const int32_t members[], int n,
                                   struct gathered *g) {
    *g = (struct gathered){0};
    g->joints = msc_arena_array(p->arena, (size_t)n, sizeof(g->joints[0]));
    for (int k = 0; g->joints && k < n; k++) {
        const struct msc_joint *j = msc_graph_joint(p->graph, members[k]);
        struct msc_operand *operands =
            msc_arena_array(p->arena, (size_t)j->n_operands + 1, sizeof(operands[0]));
        if (!operands) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
        }
        for (int32_t i = 0; i < j->n_operands; i++) {
            MSC_TRY(gather_operand(p, g, members, k, i, &operands[i]));
        }
        g->joints[k] = (struct msc_step_joint){j, j->n_operands, operands};
    }
    return g->joints ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
}

// The layout a tensor comes in: channels last where it was made so.
static enum msc_layout coming_layout(const struct planner *p, int32_t tensor) {
    return p->value_of[tensor][MSC_LAYOUT_LAST] != MSC_NO_ID &&
                   p->value_of[tensor][MSC_LAYOUT_PLAIN] == MSC_NO_ID
               ? MSC_LAYOUT_LAST
               : MSC_LAYOUT_PLAIN;
}

static void set_weight_slots(struct msc_step *s, const struct gathered *g) {
    s->n_weight_slots = g->n_weight_slots;
    memcpy(s->weight_slots, g->weight_slots, sizeof(s->weight_slots));
    memcpy(s->weight_operands, g->weight_operands, sizeof(s->weight_operands));
}

// Where sinks find what slots read.
static void note_slots(struct planner *p, const int32_t members[], const struct gathered *g, int n,
                       const int32_t inputs[]) {
    struct msc_plan *plan = p->plan;
    for (int k = 0; k < n; k++) {
        for (int32_t i = 0; i < g->joints[k].n_operands; i++) {
            const struct msc_operand *o = &g->joints[k].operands[i];
            int32_t slot = msc_sites_find_slot(&plan->sites, members[k], i);
            if (o->kind == MSC_OPERAND_INPUT && slot != MSC_NO_ID &&
                plan->slot_ids[slot] != MSC_NO_ID) {
                plan->slot_values[slot] = inputs[o->index];
            }
        }
    }
}

static enum msc_status plan_group(struct planner *p, const int32_t members[], int n) {
    struct gathered g;
    struct msc_step_layouts layouts = {.is_alias = false};
    enum msc_layout coming[MSC_STEP_MAX_INPUTS];
    int32_t inputs[MSC_STEP_MAX_INPUTS];
    struct msc_step *s = NULL;
    MSC_TRY(gather_step(p, members, n, &g));
    const struct msc_joint *last = msc_graph_joint(p->graph, members[n - 1]);
    struct msc_step asked = {.kind = MSC_STEP_RUN,
                             .n_joints = n,
                             .joints = g.joints,
                             .n_inputs = g.n,
                             .inputs = g.tensors,
                             .slots = g.slots,
                             .n_outputs = last->n_outputs,
                             .outputs = last->outputs};
    set_weight_slots(&asked, &g);
    for (int32_t i = 0; i < g.n; i++) {
        coming[i] = coming_layout(p, g.tensors[i]);
        layouts.inputs[i] = coming[i];
    }
    p->backend->def->layouts(p->backend, p->graph, &asked, coming, &layouts);
    for (int32_t i = 0; i < g.n; i++) {
        MSC_TRY(value_in(p, g.tensors[i], layouts.inputs[i], &inputs[i]));
    }
    MSC_TRY(
        add_step(p, layouts.is_alias ? MSC_STEP_ALIAS : MSC_STEP_RUN, g.n, last->n_outputs, &s));
    int32_t step = p->plan->n_steps - 1;
    s->n_joints = n;
    s->joints = g.joints;
    set_weight_slots(s, &g);
    memcpy(step_inputs(s), inputs, sizeof(int32_t) * (size_t)g.n);
    memcpy((int32_t *)s->slots, g.slots, sizeof(int32_t) * (size_t)g.n);
    note_slots(p, members, &g, n, inputs);
    for (int k = 0; k < n; k++) {
        s->macs += msc_joint_macs(p->graph, msc_graph_joint(p->graph, members[k]));
    }
    for (int32_t i = 0; i < last->n_outputs; i++) {
        int32_t value;
        MSC_TRY(add_value(p, last->outputs[i], layouts.outputs, step, i, &value));
        ((int32_t *)p->plan->steps[step].outputs)[i] = value;
    }
    return MSC_OK;
}

static enum msc_status plan_inputs(struct planner *p) {
    for (int32_t i = 0; i < msc_graph_n_inputs(p->graph); i++) {
        int32_t value;
        MSC_TRY(add_value(p, msc_graph_input(p->graph, i), MSC_LAYOUT_PLAIN, MSC_NO_ID, MSC_NO_ID,
                          &value));
        p->plan->values[value].input = i;
    }
    return MSC_OK;
}

static enum msc_status hand_over(struct planner *p, int32_t tensor) {
    struct msc_plan *plan = p->plan;
    int32_t value = MSC_NO_ID;
    if (is_made(p, tensor)) {
        MSC_TRY(value_in(p, tensor, MSC_LAYOUT_PLAIN, &value));
    }
    plan->handed[plan->n_handed++] = value;
    return MSC_OK;
}

// What the tail reads of what steps make; inputs are there without them.
static enum msc_status plan_tail(struct planner *p) {
    bool *is_read =
        msc_arena_array(&p->scratch, (size_t)msc_graph_n_tensors(p->graph) + 1, sizeof(is_read[0]));
    if (!is_read) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
    }
    for (int32_t i = 0; i < msc_graph_n_joints(p->graph); i++) {
        const struct msc_joint *j = msc_graph_joint(p->graph, i);
        for (int32_t k = 0; p->in_tail[i] && k < j->n_operands; k++) {
            int32_t tensor = j->operands[k];
            if (tensor == MSC_NO_ID || is_read[tensor] || !is_made(p, tensor) ||
                is_source(msc_graph_joint(p->graph, msc_graph_producer(p->graph, tensor)))) {
                continue;
            }
            is_read[tensor] = true;
            MSC_TRY(hand_over(p, tensor));
        }
    }
    return MSC_OK;
}

static enum msc_status plan_handed(struct planner *p, const int32_t wanted[], size_t n) {
    struct msc_plan *plan = p->plan;
    size_t room = n + (size_t)msc_graph_n_tensors(p->graph) + 1;
    int32_t *tensors = msc_arena_array(p->arena, n + 1, sizeof(int32_t));
    plan->handed = msc_arena_array(p->arena, room, sizeof(int32_t));
    if (!tensors || !plan->handed) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
    }
    for (size_t i = 0; i < n; i++) {
        tensors[i] = wanted[i];
        MSC_TRY(hand_over(p, wanted[i]));
        plan->wants_rest = plan->wants_rest || plan->handed[i] == MSC_NO_ID;
    }
    MSC_TRY(msc_plan__find_rest_slots(plan, p->origin, p->arena));
    plan->n_wanted = (int32_t)n;
    plan->wanted_tensors = tensors;
    return plan->wants_rest || plan->has_tail_slots ? plan_tail(p) : MSC_OK;
}

// ---- Creation ---------------------------------------------------------------------------------

static enum msc_status planner_init(struct planner *p, const int32_t wanted[], size_t n_wanted) {
    size_t n_tensors = (size_t)msc_graph_n_tensors(p->graph);
    size_t n_joints = (size_t)msc_graph_n_joints(p->graph);
    MSC_TRY(msc_sites_find(&p->plan->sites, p->graph, false));
    MSC_TRY(msc_plan__match_slots(p->plan, p->origin, p->arena));
    size_t n_slots = (size_t)p->plan->sites.n_slots;
    p->is_kept = msc_arena_array(&p->scratch, n_tensors + 1, sizeof(bool));
    p->is_planned = msc_arena_array(&p->scratch, n_joints + 1, sizeof(bool));
    p->value_of = msc_arena_array(&p->scratch, n_tensors + 1, sizeof(p->value_of[0]));
    p->members = msc_arena_array(&p->scratch, n_joints + 1, sizeof(p->members[0]));
    p->n_members = msc_arena_array(&p->scratch, n_joints + 1, sizeof(int32_t));
    p->plan->slot_values = msc_arena_array(p->arena, n_slots + 1, sizeof(int32_t));
    p->in_tail = msc_arena_array(p->arena, n_joints + 1, sizeof(bool));
    p->plan->in_tail = p->in_tail;
    if (!p->is_kept || !p->is_planned || !p->in_tail || !p->value_of || !p->members ||
        !p->n_members || !p->plan->slot_values) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
    }
    memset(p->value_of, 0xff, n_tensors * sizeof(p->value_of[0]));
    memset(p->plan->slot_values, 0xff, n_slots * sizeof(int32_t));
    for (size_t i = 0; i < n_wanted; i++) {
        p->is_kept[wanted[i]] = true;
    }
    for (size_t i = 0; i < n_slots; i++) {
        int32_t tensor = p->plan->sites.slots[i].tensor;
        p->is_kept[tensor] = p->is_kept[tensor] || p->plan->slot_ids[i] != MSC_NO_ID;
    }
    return MSC_OK;
}

static enum msc_status check_inputs(const struct msc_graph *g) {
    for (int32_t i = 0; i < msc_graph_n_inputs(g); i++) {
        if (msc_tensor_n_elements(msc_graph_tensor(g, msc_graph_input(g, i))) < 0) {
            return MSC_FAIL(MSC_E_INVALID, "graph %s has symbolic dims: bind them before planning",
                            msc_graph_name(g));
        }
    }
    return MSC_OK;
}

static enum msc_status make_plan(struct planner *p, const int32_t wanted[], size_t n_wanted) {
    MSC_TRY(planner_init(p, wanted, n_wanted));
    MSC_TRY(check_inputs(p->graph));
    find_tail(p);
    MSC_TRY(group_joints(p));
    MSC_TRY(plan_inputs(p));
    for (int32_t i = 0; i < msc_graph_n_joints(p->graph); i++) {
        if (p->n_members[i] > 0) {
            MSC_TRY(plan_group(p, p->members[i], p->n_members[i]));
        }
    }
    MSC_TRY(plan_handed(p, wanted, n_wanted));
    msc_plan__hash_steps(p->plan);
    for (int32_t i = 0; i < p->plan->n_steps; i++) {
        if (p->plan->steps[i].kind != MSC_STEP_ALIAS) {
            MSC_TRY(p->backend->def->prepare(p->backend, p->plan, &p->plan->steps[i]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_plan_create(struct msc_plan **out, struct msc_graph *graph,
                                struct msc_backend *backend, const int32_t wanted[],
                                size_t n_wanted) {
    return msc_plan_create_bound(out, graph, backend, wanted, n_wanted, NULL);
}

enum msc_status msc_plan_create_bound(struct msc_plan **out, struct msc_graph *graph,
                                      struct msc_backend *backend, const int32_t wanted[],
                                      size_t n_wanted, const struct msc_plan_origin *origin) {
    struct planner p = {.graph = graph, .backend = backend, .origin = origin};
    struct msc_plan *plan = msc_alloc_zero(1, sizeof(*plan));
    struct msc_arena *arena = msc_alloc_zero(1, sizeof(*arena));
    if (!plan || !arena) {
        msc_free(plan);
        msc_free(arena);
        msc_graph_destroy(graph);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory while planning");
    }
    plan->graph = graph;
    plan->backend = backend;
    plan->storage = arena;
    p.plan = plan;
    p.arena = arena;
    enum msc_status status = make_plan(&p, wanted, n_wanted);
    msc_arena_finish(&p.scratch);
    if (status != MSC_OK) {
        msc_plan_destroy(plan);
        return status;
    }
    *out = plan;
    return MSC_OK;
}

void msc_plan_destroy(struct msc_plan *plan) {
    if (!plan) {
        return;
    }
    for (int32_t i = 0; i < plan->n_steps; i++) {
        if (plan->steps[i].kernel) {
            plan->backend->def->release(plan->backend, &plan->steps[i]);
        }
    }
    msc_sites_finish(&plan->sites);
    msc_free(plan->values);
    msc_free(plan->steps);
    msc_graph_destroy((struct msc_graph *)plan->graph);
    msc_arena_finish(plan->storage);
    msc_free(plan->storage);
    msc_free(plan);
}

struct msc_view msc_plan_view(const struct msc_plan *plan, int32_t value, void *data) {
    const struct msc_value *v = &plan->values[value];
    struct msc_view view = {
        .data = data, .dtype = v->dtype, .layout = v->layout, .n_dims = v->n_dims};
    memcpy(view.dims, v->dims, sizeof(view.dims));
    return view;
}
