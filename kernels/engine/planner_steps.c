// Makes the steps of a plan and the values between them.
#include "kernels/engine/planner_internal.h"

#include "graph/cost.h"
#include "kernels/backend.h"
#include "kernels/engine/planner.h"

#include <assert.h>
#include <string.h>

// ---- Values and reorders ----------------------------------------------------------------------

static enum msc_status add_value(struct msc_planner *p, int32_t tensor, enum msc_layout layout,
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

static enum msc_status planner_steps_add_step(struct msc_planner *p, enum msc_step_kind kind,
                                              int32_t n_inputs, int32_t n_outputs,
                                              struct msc_step **out) {
    struct msc_plan *plan = p->plan;
    MSC_TRY(msc_grow(&plan->steps, &p->steps_capacity, (size_t)plan->n_steps + 1,
                     sizeof(plan->steps[0])));
    struct msc_step *s = &plan->steps[plan->n_steps];
    int32_t *ids =
        msc_arena_array(p->arena, (size_t)(2 * n_inputs + n_outputs) + 1, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(ids));
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
    return (int32_t *)s->inputs; // memory of the arena, written only while the plan is made
}

// Finds the value of a tensor in a layout, adding a reorder step if only the other layout exists.
static enum msc_status value_in(struct msc_planner *p, int32_t tensor, enum msc_layout layout,
                                int32_t *out) {
    enum msc_layout other = layout == MSC_LAYOUT_NCHW ? MSC_LAYOUT_NHWC : MSC_LAYOUT_NCHW;
    struct msc_step *s;
    if (p->value_of[tensor][layout] != MSC_NO_ID) {
        *out = p->value_of[tensor][layout];
        return MSC_OK;
    }
    int32_t from = p->value_of[tensor][other];
    assert(from != MSC_NO_ID);
    MSC_TRY(planner_steps_add_step(p, MSC_STEP_REORDER, 1, 1, &s));
    int32_t step = p->plan->n_steps - 1;
    MSC_TRY(add_value(p, tensor, layout, step, 0, out));
    s = &p->plan->steps[step];
    step_inputs(s)[0] = from;
    ((int32_t *)s->outputs)[0] = *out;
    return MSC_OK;
}

enum msc_status msc_planner__add_inputs(struct msc_planner *p) {
    for (int32_t i = 0; i < msc_graph_n_inputs(p->graph); i++) {
        int32_t value;
        MSC_TRY(add_value(p, msc_graph_input(p->graph, i), MSC_LAYOUT_NCHW, MSC_NO_ID, MSC_NO_ID,
                          &value));
        p->plan->values[value].input = i;
    }
    return MSC_OK;
}

// ---- Steps ------------------------------------------------------------------------------------

struct gathered {
    struct msc_step_joint *joints;
    int32_t tensors[MSC_STEP_MAX_INPUTS]; // inputs of the step
    int32_t slots[MSC_STEP_MAX_INPUTS];
    int32_t n;
    int32_t n_weight_slots;
    int32_t weight_slots[MSC_STEP_MAX_WEIGHTS], weight_operands[MSC_STEP_MAX_WEIGHTS];
};

// Finds or adds the step input of an operand. Operands that read the same tensor through the same
// slot share an input.
static enum msc_status gather_input(struct gathered *g, const struct msc_joint *j, int32_t tensor,
                                    int32_t slot, int32_t *index) {
    for (int32_t i = 0; i < g->n; i++) {
        if (g->tensors[i] == tensor && g->slots[i] == slot) {
            *index = i;
            return MSC_OK;
        }
    }
    if (g->n == MSC_STEP_MAX_INPUTS) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "joint %s has more inputs than the %d that a step can have", j->name,
                        MSC_STEP_MAX_INPUTS);
    }
    g->tensors[g->n] = tensor;
    g->slots[g->n] = slot;
    *index = g->n++;
    return MSC_OK;
}

static enum msc_status gather_operand(struct msc_planner *p, struct gathered *g,
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
            return MSC_FAIL(MSC_E_INVALID,
                            "weight %s has no elements: load the model with its weights",
                            msc_graph_tensor(p->graph, weight)->name);
        }
        *out = (struct msc_operand){MSC_OPERAND_WEIGHT, weight};
        if (slot != MSC_NO_ID) {
            if (g->n_weight_slots == MSC_STEP_MAX_WEIGHTS) {
                return MSC_FAIL(MSC_E_UNSUPPORTED,
                                "a step can have at most %d quantised weights; %s is one too many",
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

static enum msc_status gather_step(struct msc_planner *p, const int32_t members[], int n,
                                   struct gathered *g) {
    *g = (struct gathered){0};
    g->joints = msc_arena_array(p->arena, (size_t)n, sizeof(g->joints[0]));
    for (int k = 0; g->joints && k < n; k++) {
        const struct msc_joint *j = msc_graph_joint(p->graph, members[k]);
        struct msc_operand *operands =
            msc_arena_array(p->arena, (size_t)j->n_operands + 1, sizeof(operands[0]));
        MSC_TRY(MSC_ALLOCATED(operands));
        for (int32_t i = 0; i < j->n_operands; i++) {
            MSC_TRY(gather_operand(p, g, members, k, i, &operands[i]));
        }
        g->joints[k] = (struct msc_step_joint){j, j->n_operands, operands};
    }
    return MSC_ALLOCATED(g->joints);
}

// The layout in which a tensor is available: NHWC if a step made it in this layout.
static enum msc_layout coming_layout(const struct msc_planner *p, int32_t tensor) {
    return p->value_of[tensor][MSC_LAYOUT_NHWC] != MSC_NO_ID &&
                   p->value_of[tensor][MSC_LAYOUT_NCHW] == MSC_NO_ID
               ? MSC_LAYOUT_NHWC
               : MSC_LAYOUT_NCHW;
}

static void set_weight_slots(struct msc_step *s, const struct gathered *g) {
    s->n_weight_slots = g->n_weight_slots;
    memcpy(s->weight_slots, g->weight_slots, sizeof(s->weight_slots));
    memcpy(s->weight_operands, g->weight_operands, sizeof(s->weight_operands));
}

// Records which value each slot reads, for sinks that want the value.
static void note_slots(struct msc_planner *p, const int32_t members[], const struct gathered *g,
                       int n, const int32_t inputs[]) {
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

enum msc_status msc_planner__add_group(struct msc_planner *p, const int32_t members[], int n) {
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
    MSC_TRY(planner_steps_add_step(p, layouts.is_alias ? MSC_STEP_ALIAS : MSC_STEP_RUN, g.n,
                                   last->n_outputs, &s));
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

// ---- Live-out values --------------------------------------------------------------------------

static bool is_input(const struct msc_graph *g, int32_t tensor) {
    return msc_graph_joint(g, msc_graph_producer(g, tensor))->op == MSC_OP_INPUT;
}

// True if the tensor has elements and is either a graph input or made by a step.
static bool is_made(const struct msc_planner *p, int32_t tensor) {
    const struct msc_tensor *t = msc_graph_tensor(p->graph, tensor);
    return msc_graph_weight_of(p->graph, tensor) == MSC_NO_ID && !p->in_remainder[t->producer] &&
           msc_tensor_n_elements(t) > 0;
}

static enum msc_status add_live_out(struct msc_planner *p, int32_t tensor) {
    struct msc_plan *plan = p->plan;
    int32_t value = MSC_NO_ID;
    if (is_made(p, tensor)) {
        MSC_TRY(value_in(p, tensor, MSC_LAYOUT_NCHW, &value));
    }
    plan->live_out[plan->n_live_out++] = value;
    return MSC_OK;
}

// Adds to the live-out values the step outputs that the remainder reads. The remainder reads graph
// inputs directly.
static enum msc_status add_remainder_inputs(struct msc_planner *p) {
    bool *is_read =
        msc_arena_array(&p->scratch, (size_t)msc_graph_n_tensors(p->graph) + 1, sizeof(is_read[0]));
    MSC_TRY(MSC_ALLOCATED(is_read));
    for (int32_t i = 0; i < msc_graph_n_joints(p->graph); i++) {
        const struct msc_joint *j = msc_graph_joint(p->graph, i);
        for (int32_t k = 0; p->in_remainder[i] && k < j->n_operands; k++) {
            int32_t tensor = j->operands[k];
            if (tensor == MSC_NO_ID || is_read[tensor] || !is_made(p, tensor) ||
                is_input(p->graph, tensor)) {
                continue;
            }
            is_read[tensor] = true;
            MSC_TRY(add_live_out(p, tensor));
        }
    }
    return MSC_OK;
}

// The slot whose edit applies when a sink reads a tensor. If a target stores the tensor as
// integers, sinks read the quantised values, as consumers do.
static int32_t sink_slot(const struct msc_plan *plan, int32_t tensor) {
    const struct msc_sites *sites = &plan->sites;
    for (int32_t i = 0; sites->scheme.target && i < sites->n_site_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->tensor == tensor && slot->kind == MSC_SITE_ACTIVATION &&
            plan->slot_ids[i] != MSC_NO_ID) {
            return plan->slot_ids[i];
        }
    }
    return MSC_NO_ID;
}

// Records the values of slots that are outputs of the graph, so that sinks can read them.
static enum msc_status find_output_slots(struct msc_planner *p) {
    const struct msc_sites *sites = &p->plan->sites;
    for (int32_t i = 0; i < sites->n_site_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        if (slot->joint == MSC_NO_ID && is_made(p, slot->tensor)) {
            MSC_TRY(value_in(p, slot->tensor, MSC_LAYOUT_NCHW, &p->plan->slot_values[i]));
        }
    }
    return MSC_OK;
}

enum msc_status msc_planner__find_live_out(struct msc_planner *p, const int32_t wanted[],
                                           size_t n) {
    struct msc_plan *plan = p->plan;
    size_t room = n + (size_t)msc_graph_n_tensors(p->graph) + 1;
    int32_t *tensors = msc_arena_array(p->arena, n + 1, sizeof(int32_t));
    plan->live_out = msc_arena_array(p->arena, room, sizeof(int32_t));
    plan->live_out_slots = msc_arena_array(p->arena, n + 1, sizeof(int32_t));
    MSC_TRY(MSC_ALLOCATED(tensors && plan->live_out && plan->live_out_slots));
    for (size_t i = 0; i < n; i++) {
        tensors[i] = wanted[i];
        MSC_TRY(add_live_out(p, wanted[i]));
        plan->live_out_slots[i] = sink_slot(plan, wanted[i]);
        plan->wants_remainder = plan->wants_remainder || plan->live_out[i] == MSC_NO_ID;
    }
    MSC_TRY(find_output_slots(p));
    MSC_TRY(msc_planner__find_remainder_slots(plan, p->origin, p->arena));
    plan->n_wanted = (int32_t)n;
    plan->wanted_tensors = tensors;
    return plan->wants_remainder || plan->remainder_reads_slots ? add_remainder_inputs(p) : MSC_OK;
}
