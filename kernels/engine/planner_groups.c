// Finds the joints of the remainder, and divides the others into groups that become steps.
#include "kernels/engine/planner_internal.h"

#include "kernels/backend.h"

#include <string.h>

enum { MAX_FUSED = 32 }; // most joints in one step

static bool is_source(const struct msc_joint *j) {
    return j->op == MSC_OP_INPUT || j->op == MSC_OP_CONSTANT;
}

// ---- The remainder ----------------------------------------------------------------------------

static bool is_in_remainder(const struct msc_planner *p, const struct msc_joint *j) {
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
        if (msc_tensor_n_elements(t) <= 0 || p->in_remainder[t->producer]) {
            return true;
        }
    }
    return false;
}

void msc_planner__find_remainder(struct msc_planner *p) {
    for (int32_t i = 0; i < msc_graph_n_joints(p->graph); i++) {
        const struct msc_joint *j = msc_graph_joint(p->graph, i);
        p->in_remainder[i] = !is_source(j) && is_in_remainder(p, j);
        p->is_planned[i] = p->in_remainder[i];
    }
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

// The earliest joint outside the group that reads a tensor of the group, or MSC_NO_ID.
static int32_t next_reader(const struct msc_planner *p, const int32_t group[], int n) {
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

// True if only the group's last output is read outside the group.
static bool is_closed(const struct msc_planner *p, const int32_t group[], int n) {
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

static bool planner_groups_has_shape_of(const struct msc_planner *p, const struct msc_joint *anchor,
                                        const struct msc_joint *joint) {
    const struct msc_tensor *a = msc_graph_tensor(p->graph, anchor->outputs[0]);
    const struct msc_tensor *b = msc_graph_tensor(p->graph, joint->outputs[0]);
    return a->n_dims == b->n_dims && a->dtype == b->dtype &&
           memcmp(a->dims, b->dims, sizeof(a->dims[0]) * (size_t)a->n_dims) == 0;
}

// Grows a group from its first joint (the anchor), joint by joint in topological order, and returns
// the length of the longest prefix that is closed. Only the last output of a closed group is read
// outside, so no path leaves the group and leads back into it.
static int grow_group(const struct msc_planner *p, int32_t group[MAX_FUSED]) {
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
            !planner_groups_has_shape_of(p, anchor, joint) ||
            !p->backend->def->fuses(p->backend, p->graph, anchor, joint)) {
            break;
        }
        group[n++] = next;
        closed = is_closed(p, group, n) ? n : closed;
    }
    return closed;
}

enum msc_status msc_planner__group_joints(struct msc_planner *p) {
    int32_t n = msc_graph_n_joints(p->graph);
    for (int32_t i = 0; i < n; i++) {
        if (p->is_planned[i] || is_source(msc_graph_joint(p->graph, i))) {
            continue;
        }
        int32_t group[MAX_FUSED] = {i};
        int length = grow_group(p, group);
        int32_t last = group[length - 1];
        p->members[last] = msc_arena_array(&p->scratch, (size_t)length, sizeof(int32_t));
        MSC_TRY(MSC_ALLOCATED(p->members[last]));
        p->n_members[last] = length;
        for (int k = 0; k < length; k++) {
            p->members[last][k] = group[k];
            p->is_planned[group[k]] = true;
        }
    }
    return MSC_OK;
}
