// Cuts variants of a network where the network is cut.
#include "base/str.h"
#include "env/placement/runs.h"
#include "graph/passes/extract.h"

#include <string.h>

struct cutting {
    struct msc_place_network *v;
    const struct msc_graph *g; // of the variant
    const struct msc_place_network *network;
    int64_t *lengths; // [n_prims] of msc_graph_sample_lengths
    bool *is_after;   // [n_joints] runs after the cut
    int32_t n_cuts;   // so far
};

// The tensor that passes from each group of the network to later ones [n_groups - 1]; MSC_NO_ID:
// none does.
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

// The group of the network that computes output k; -1: it is not computed.
static int32_t output_group(const struct cutting *c, int32_t k) {
    int32_t tensor = msc_graph_output(c->network->g, k);
    return is_computed(c->network->g, tensor)
               ? c->network->groups[msc_graph_tensor(c->network->g, tensor)->producer]
               : -1;
}

static void mark_dependents(struct cutting *c, int32_t cut) {
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        const struct msc_joint *j = msc_graph_joint(c->g, i);
        c->is_after[i] = false;
        for (int32_t k = 0; k < j->n_inputs; k++) {
            int32_t producer = msc_graph_tensor(c->g, j->inputs[k])->producer;
            bool is_computed_after = producer != MSC_NO_ID && c->is_after[producer];
            c->is_after[i] = c->is_after[i] || j->inputs[k] == cut || is_computed_after;
        }
    }
}

// True if a joint after the cut reads the tensor, or it is an output that the network computes
// after this group.
static bool is_needed_after(const struct cutting *c, int32_t tensor, int32_t group) {
    const int32_t *joints;
    int32_t n = msc_graph_consumers(c->g, tensor, &joints);
    bool is_needed = false;
    for (int32_t i = 0; i < n; i++) {
        is_needed = is_needed || c->is_after[joints[i]];
    }
    for (int32_t k = 0; k < msc_graph_n_outputs(c->g); k++) {
        is_needed =
            is_needed || (msc_graph_output(c->g, k) == tensor && output_group(c, k) > group);
    }
    return is_needed;
}

// Marks the joints that only what follows the cut needs: those that prepare another input of the
// network, for example.
static void mark_needed(struct cutting *c, int32_t cut, int32_t group) {
    for (int32_t i = msc_graph_n_joints(c->g) - 1; i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(c->g, i);
        for (int32_t k = 0; k < j->n_outputs && !msc_graph_is_shared(c->g, i); k++) {
            c->is_after[i] = c->is_after[i] ||
                             (j->outputs[k] != cut && is_needed_after(c, j->outputs[k], group));
        }
    }
}

// True if only the tensor at the cut passes it, and every output is computed on the side on which
// the network computes it.
static bool is_divided(const struct cutting *c, int32_t cut, int32_t group) {
    bool fits = true;
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        const struct msc_joint *j = msc_graph_joint(c->g, i);
        for (int32_t k = 0; k < j->n_inputs && !msc_graph_is_shared(c->g, i); k++) {
            int32_t t = j->inputs[k];
            fits = fits && (t == cut || !is_computed(c->g, t) ||
                            c->is_after[msc_graph_tensor(c->g, t)->producer] == c->is_after[i]);
        }
    }
    for (int32_t k = 0; k < msc_graph_n_outputs(c->g); k++) {
        int32_t t = msc_graph_output(c->g, k);
        fits = fits && (!is_computed(c->g, t) || c->is_after[msc_graph_tensor(c->g, t)->producer] ==
                                                     (output_group(c, k) > group));
    }
    return fits;
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

// True if values of the two tensors have the same type and shape. Open lengths match any length.
static bool is_alike(const struct msc_tensor *a, const struct msc_tensor *b) {
    bool is = a->dtype == b->dtype && a->n_dims == b->n_dims;
    for (int d = 0; is && d < a->n_dims; d++) {
        is = a->dims[d] < 0 || b->dims[d] < 0 || a->dims[d] == b->dims[d];
    }
    return is;
}

// Cuts the variant at the tensor that passes from this group of the network; false: it cannot be
// cut there.
static bool cut_at(struct cutting *c, int32_t tensor, int32_t group) {
    const struct msc_tensor *wanted = msc_graph_tensor(c->network->g, tensor);
    int32_t cut = msc_graph_find_tensor(c->g, msc_tensor_label(wanted));
    if (cut == MSC_NO_ID || !is_computed(c->g, cut)) {
        return false;
    }
    const struct msc_tensor *t = msc_graph_tensor(c->g, cut);
    if (!is_alike(t, wanted) || c->v->groups[t->producer] != c->n_cuts ||
        !msc_graph_counts_samples(c->g, cut, c->lengths)) {
        return false;
    }
    mark_dependents(c, cut);
    mark_needed(c, cut, group);
    if (!is_divided(c, cut, group)) {
        return false;
    }
    note_end(c, cut);
    for (int32_t i = 0; i < msc_graph_n_joints(c->g); i++) {
        c->v->groups[i] += c->is_after[i];
    }
    c->n_cuts++;
    return true;
}

static enum msc_status refuse_end(const struct cutting *c, const char *kind, int32_t index,
                                  int32_t tensor, int32_t wanted, const char *path) {
    struct msc_str texts[2] = {{0}, {0}};
    msc_tensor_print(c->g, tensor, &texts[0]);
    msc_tensor_print(c->network->g, wanted, &texts[1]);
    enum msc_status status = msc_str_status(&texts[0]);
    status = status == MSC_OK ? msc_str_status(&texts[1]) : status;
    if (status == MSC_OK) {
        status =
            MSC_FAIL(MSC_E_INVALID,
                     "%s: it is not a variant of the network: its %s %d is %s, but that of the "
                     "network is %s",
                     path, kind, (int)index, msc_str_text(&texts[0]), msc_str_text(&texts[1]));
    }
    msc_str_finish(&texts[0]);
    msc_str_finish(&texts[1]);
    return status;
}

// Values pass between pieces by name, so inputs and outputs of the variant have the names, types
// and shapes of the network's.
static enum msc_status check_ends(const struct cutting *c, const char *path) {
    const struct msc_graph *g = c->g, *network = c->network->g;
    int32_t n_inputs = msc_graph_n_inputs(network), n_outputs = msc_graph_n_outputs(network);
    if (msc_graph_n_inputs(g) != n_inputs || msc_graph_n_outputs(g) != n_outputs) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: it is not a variant of the network: its numbers of inputs and outputs are %d "
            "and %d, but those of the network are %d and %d",
            path, (int)msc_graph_n_inputs(g), (int)msc_graph_n_outputs(g), (int)n_inputs,
            (int)n_outputs);
    }
    for (int32_t i = 0; i < n_inputs + n_outputs; i++) {
        bool is_input = i < n_inputs;
        int32_t k = is_input ? i : i - n_inputs;
        int32_t own = is_input ? msc_graph_input(g, k) : msc_graph_output(g, k);
        int32_t wanted = is_input ? msc_graph_input(network, k) : msc_graph_output(network, k);
        const struct msc_tensor *a = msc_graph_tensor(g, own);
        const struct msc_tensor *b = msc_graph_tensor(network, wanted);
        if (strcmp(msc_tensor_label(a), msc_tensor_label(b)) != 0 || !is_alike(a, b) ||
            is_computed(g, own) != is_computed(network, wanted)) {
            return refuse_end(c, is_input ? "input" : "output", k, own, wanted, path);
        }
    }
    return MSC_OK;
}

enum msc_status msc_place_cut_variant(struct msc_place_network *variant, bool is_cut[],
                                      const struct msc_place_network *network, size_t n_groups,
                                      const char *path, struct msc_arena *arena) {
    struct cutting c = {.v = variant, .g = variant->g, .network = network};
    size_t n = (size_t)msc_graph_n_joints(c.g) + 1;
    int32_t *cuts = msc_arena_array(arena, n_groups, sizeof *cuts);
    c.lengths = msc_arena_array(arena, (size_t)msc_graph_n_prims(c.g) + 1, sizeof c.lengths[0]);
    c.is_after = msc_arena_array(arena, n, sizeof c.is_after[0]);
    variant->groups = msc_arena_array(arena, n, sizeof variant->groups[0]);
    variant->ends = msc_arena_array(arena, n, sizeof variant->ends[0]);
    MSC_TRY(MSC_ALLOCATED(cuts && c.lengths && c.is_after && variant->groups && variant->ends));
    MSC_TRY(check_ends(&c, path));
    msc_graph_sample_lengths(c.lengths, c.g);
    find_cuts(cuts, network, n_groups);
    for (int32_t i = 0; i < msc_graph_n_joints(c.g); i++) {
        variant->groups[i] = 0;
        variant->ends[i] = -1;
    }
    for (size_t i = 0; i + 1 < n_groups; i++) {
        is_cut[i] = is_cut[i] && cuts[i] != MSC_NO_ID && cut_at(&c, cuts[i], (int32_t)i);
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
