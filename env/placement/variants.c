// Cuts variants of a network where the network is cut.
#include "env/placement/runs.h"
#include "graph/passes/extract.h"

#include <string.h>

struct cutting {
    struct msc_place_network *v;
    const struct msc_graph *g; // of the variant
    int64_t *lengths;          // [n_prims] of msc_graph_sample_lengths
    bool *is_after;            // [n_joints] depends on the tensor at the cut
    int32_t n_cuts;            // so far
};

// The only tensor that passes from each group of the network to later ones [n_groups - 1];
// MSC_NO_ID: there are several.
static void find_cuts(int32_t cuts[], const struct msc_place_network *network, size_t n_groups) {
    const struct msc_graph *g = network->g;
    for (size_t i = 0; i + 1 < n_groups; i++) {
        cuts[i] = MSC_NO_ID;
    }
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_inputs; k++) {
            int32_t producer = msc_graph_tensor(g, j->inputs[k])->producer;
            int32_t from = producer == MSC_NO_ID ? -1 : network->groups[producer];
            for (int32_t c = from; from >= 0 && c < network->groups[i]; c++) {
                cuts[c] = j->inputs[k];
            }
        }
    }
}

static bool is_computed(const struct msc_graph *g, int32_t tensor) {
    int32_t producer = msc_graph_tensor(g, tensor)->producer;
    return producer != MSC_NO_ID && !msc_graph_is_shared(g, producer);
}

// Marks the joints that depend on a tensor. True if nothing else that joints compute reaches them.
static bool divide(struct cutting *c, int32_t cut) {
    bool is_alone = true;
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        const struct msc_joint *j = msc_graph_joint(c->g, i);
        bool is_after = false, has_other = false;
        for (int32_t k = 0; k < j->n_inputs; k++) {
            int32_t t = j->inputs[k];
            bool depends = t == cut || (is_computed(c->g, t) &&
                                        c->is_after[msc_graph_tensor(c->g, t)->producer]);
            is_after = is_after || depends;
            has_other = has_other || (!depends && is_computed(c->g, t));
        }
        c->is_after[i] = is_after;
        is_alone = is_alone && !(is_after && has_other);
    }
    return is_alone;
}

// The only joint that reads a tensor, if it has this operator and the tensor is no output.
static const struct msc_joint *only_reader(const struct msc_graph *g, int32_t tensor,
                                           enum msc_op op) {
    const int32_t *joints;
    int32_t n = msc_graph_consumers(g, tensor, &joints);
    const struct msc_joint *j = n == 1 ? msc_graph_joint(g, joints[0]) : NULL;
    bool is = j && j->op == op && j->inputs[0] == tensor && !msc_graph_is_output(g, tensor);
    return is ? j : NULL;
}

static void note_end(struct cutting *c, int32_t cut) {
    const struct msc_joint *to = only_reader(c->g, cut, MSC_OP_QUANTIZE), *from;
    from = to ? only_reader(c->g, to->outputs[0], MSC_OP_DEQUANTIZE) : NULL;
    if (from && !msc_graph_is_output(c->g, from->outputs[0])) {
        c->v->ends[to->id] = c->v->ends[from->id] = c->n_cuts;
    }
}

// Cuts the variant at the tensor of this name; false: it cannot be cut there.
static bool cut_at(struct cutting *c, const struct msc_tensor *wanted) {
    int32_t cut = msc_graph_find_tensor(c->g, msc_tensor_label(wanted));
    if (cut == MSC_NO_ID || !is_computed(c->g, cut)) {
        return false;
    }
    const struct msc_tensor *t = msc_graph_tensor(c->g, cut);
    if (t->dtype != wanted->dtype || t->n_dims != wanted->n_dims ||
        c->v->groups[t->producer] != c->n_cuts ||
        !msc_graph_counts_samples(c->g, cut, c->lengths) || !divide(c, cut)) {
        return false;
    }
    note_end(c, cut);
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        c->v->groups[i] += c->is_after[i];
    }
    c->n_cuts++;
    return true;
}

// Values pass between pieces by name, so the variant's inputs and outputs have the network's names.
static enum msc_status check_ends(const struct msc_graph *g, const struct msc_graph *network,
                                  const char *path) {
    bool fits = msc_graph_n_inputs(g) == msc_graph_n_inputs(network) &&
                msc_graph_n_outputs(g) == msc_graph_n_outputs(network);
    for (int32_t i = 0; fits && i < msc_graph_n_inputs(g) + msc_graph_n_outputs(g); i++) {
        int32_t k = i - msc_graph_n_inputs(g);
        int32_t a = k < 0 ? msc_graph_input(g, i) : msc_graph_output(g, k);
        int32_t b = k < 0 ? msc_graph_input(network, i) : msc_graph_output(network, k);
        fits = strcmp(msc_tensor_label(msc_graph_tensor(g, a)),
                      msc_tensor_label(msc_graph_tensor(network, b))) == 0;
    }
    return fits ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID,
                           "%s: its inputs or outputs are others than the network's, so it is no "
                           "variant of it",
                           path);
}

enum msc_status msc_place_cut_variant(struct msc_place_network *variant, bool is_cut[],
                                      const struct msc_place_network *network, size_t n_groups,
                                      const char *path, struct msc_arena *arena) {
    struct cutting c = {.v = variant, .g = variant->g};
    size_t n = (size_t)msc_graph_n_joints(c.g) + 1;
    int32_t *cuts = msc_arena_array(arena, n_groups, sizeof *cuts);
    c.lengths = msc_arena_array(arena, (size_t)msc_graph_n_prims(c.g) + 1, sizeof c.lengths[0]);
    c.is_after = msc_arena_array(arena, n, sizeof c.is_after[0]);
    variant->groups = msc_arena_array(arena, n, sizeof variant->groups[0]);
    variant->ends = msc_arena_array(arena, n, sizeof variant->ends[0]);
    MSC_TRY(MSC_ALLOCATED(cuts && c.lengths && c.is_after && variant->groups && variant->ends));
    MSC_TRY(check_ends(c.g, network->g, path));
    msc_graph_sample_lengths(c.lengths, c.g);
    find_cuts(cuts, network, n_groups);
    for (int32_t i = 0; i < msc_graph_n_joints(c.g); i++) {
        variant->groups[i] = 0;
        variant->ends[i] = -1;
    }
    for (size_t i = 0; i + 1 < n_groups; i++) {
        is_cut[i] =
            is_cut[i] && cuts[i] != MSC_NO_ID && cut_at(&c, msc_graph_tensor(network->g, cuts[i]));
    }
    for (int32_t i = 0; i < msc_graph_n_joints(c.g); i++) {
        variant->groups[i] = msc_graph_is_shared(c.g, i) ? -1 : variant->groups[i];
    }
    return MSC_OK;
}

enum msc_status msc_place_align(struct msc_place_network networks[], const char *const paths[],
                                size_t n, size_t n_groups, struct msc_arena *arena) {
    bool *is_cut = msc_arena_array(arena, n_groups, sizeof *is_cut);
    MSC_TRY(MSC_ALLOCATED(is_cut));
    for (size_t v = 1; v < n; v++) {
        for (size_t i = 0; i < n_groups; i++) {
            is_cut[i] = true;
        }
        MSC_TRY(
            msc_place_cut_variant(&networks[v], is_cut, &networks[0], n_groups, paths[v], arena));
        for (size_t i = 0; i + 1 < n_groups; i++) {
            if (!is_cut[i]) {
                return MSC_FAIL(MSC_E_INVALID,
                                "%s: it cannot be cut after group %zu of the network, so it is not "
                                "the variant that the table was measured with; measure again",
                                paths[v], i);
            }
        }
    }
    return MSC_OK;
}
