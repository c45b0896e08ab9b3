#include "tools/bias_rounding.h"

#include "base/alloc.h"
#include "kernels/backend.h"

struct rounding {
    const struct msc_edit *x, *w;
    struct msc_edit edit;
    struct rounding *next;
};

struct bias {
    int32_t slot, x, w; // slots of the bias, the activation and the weight of one joint
    struct rounding *made;
};

struct msc_bias_roundings {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    struct msc_arena arena;
    size_t n;
    struct bias *biases; // [n]
};

static enum msc_status no_bias_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory for rounded biases");
}

// The slots of the activation and the weight that a joint multiplies; false where it has not both.
static bool find_factors(struct bias *b, const struct msc_sites *sites, const struct msc_joint *j) {
    b->x = b->w = MSC_NO_ID;
    for (int32_t k = 0; k < j->n_operands; k++) {
        int32_t slot = msc_sites_find_slot(sites, j->id, k);
        if (slot != MSC_NO_ID && sites->slots[slot].kind == MSC_SITE_ACTIVATION) {
            b->x = slot;
        } else if (slot != MSC_NO_ID && sites->slots[slot].kind == MSC_SITE_WEIGHT) {
            b->w = slot;
        }
    }
    return b->x != MSC_NO_ID && b->w != MSC_NO_ID;
}

static enum msc_status roundings_init(struct msc_bias_roundings *b) {
    const struct msc_sites *sites = b->sites;
    b->biases = msc_arena_array(&b->arena, (size_t)(sites->n_slots - sites->n_site_slots) + 1,
                                sizeof(b->biases[0]));
    if (!b->biases) {
        return no_bias_memory();
    }
    bool rounds = sites->scheme.target && sites->scheme.target->rounds_biases;
    for (int32_t i = sites->n_site_slots; rounds && i < sites->n_slots; i++) {
        const struct msc_joint *j = msc_graph_joint(b->graph, sites->slots[i].joint);
        struct bias bias = {.slot = i};
        if (msc_target_is_integer(msc_target_role(sites->scheme.target, b->graph, j)) &&
            find_factors(&bias, sites, j)) {
            b->biases[b->n++] = bias;
        }
    }
    return MSC_OK;
}

enum msc_status msc_bias_roundings_create(struct msc_bias_roundings **out,
                                          const struct msc_graph *g,
                                          const struct msc_sites *sites) {
    struct msc_bias_roundings *b = msc_alloc_zero(1, sizeof(*b));
    if (!b) {
        return no_bias_memory();
    }
    b->graph = g;
    b->sites = sites;
    enum msc_status status = roundings_init(b);
    if (status != MSC_OK) {
        msc_bias_roundings_destroy(b);
        return status;
    }
    *out = b;
    return MSC_OK;
}

void msc_bias_roundings_destroy(struct msc_bias_roundings *b) {
    if (b) {
        msc_arena_finish(&b->arena);
        msc_free(b);
    }
}

static enum msc_status make_rounding(struct msc_bias_roundings *b, struct bias *bias,
                                     const struct msc_edit *x, const struct msc_edit *w) {
    const struct msc_quant *of_x = msc_edit_quant(x), *of_w = msc_edit_quant(w);
    struct rounding *r = msc_arena_alloc(&b->arena, sizeof(*r));
    float *steps = msc_arena_array(&b->arena, (size_t)of_w->n, sizeof(steps[0]));
    if (!r || !steps) {
        return no_bias_memory();
    }
    for (int32_t c = 0; c < of_w->n; c++) {
        steps[c] = of_x->scales[0] * of_w->scales[c];
    }
    r->x = x;
    r->w = w;
    r->edit =
        (struct msc_edit){.kind = MSC_EDIT_ROUND_BIAS, .rounding = {.n = of_w->n, .steps = steps}};
    msc_edit_seal(&r->edit);
    r->next = bias->made;
    bias->made = r;
    return MSC_OK;
}

static bool is_integer_edit(const struct msc_edit *e) {
    const struct msc_quant *quant = msc_edit_quant(e);
    return quant && msc_quant_is_integer(quant);
}

enum msc_status msc_bias_roundings_fill(struct msc_bias_roundings *b,
                                        const struct msc_edit *edits[]) {
    for (size_t i = 0; i < b->n; i++) {
        struct bias *bias = &b->biases[i];
        const struct msc_edit *x = edits[bias->x], *w = edits[bias->w];
        if (!is_integer_edit(x) || !is_integer_edit(w)) {
            continue;
        }
        struct rounding *r = bias->made;
        while (r && (r->x != x || r->w != w)) {
            r = r->next;
        }
        if (!r) {
            MSC_TRY(make_rounding(b, bias, x, w));
            r = bias->made;
        }
        edits[bias->slot] = &r->edit;
    }
    return MSC_OK;
}
