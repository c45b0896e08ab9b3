#include "tools/bias_edits.h"

#include "base/alloc.h"
#include "graph/tail.h"
#include "kernels/backend.h"

#include <math.h>

// The largest bias, in steps. Before rounding, weight scales are widened so that a bias takes at
// most 2^30 steps (tools/weight_steps.h). The rest of int32 is room for the products.
static const double most_sum = 0x1.1p30;

// The edit of a bias for one combination of edits of activation, weight and bias.
struct made {
    const struct msc_edit *x, *w, *b; // NULL `b`: the bias keeps the model's elements
    bool has_shift;                   // do the elements include the constant that the tail adds?
    struct msc_edit shifted, rounded;
    struct msc_array *elements;  // elements of `shifted`; NULL: the bias is not shifted
    const struct msc_edit *edit; // the first edit of the chain; NULL: the bias is not edited
    struct made *next;
};

struct bias {
    int32_t slot, x, w; // slots of the bias, the activation and the weight of one joint
    bool is_rounded;    // activation and weight are both quantised to integers of known scales
    float shift;        // constant that the joint's tail adds; 0: none
    int32_t end;        // the tensor at the end of that tail
    struct made *made;
};

struct msc_bias_edits {
    const struct msc_graph *graph;
    const struct msc_sites *sites;
    struct msc_arena arena;
    size_t n;
    struct bias *biases; // [n]
};

// Finds the slots of a joint's activation and weight. False if it has no weight.
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
    return b->w != MSC_NO_ID;
}

// Finds the constant in the tail of a joint. Targets with `has_forms` add the constant to the bias
// if the tail's output is quantised.
static void find_shift(struct bias *out, const struct msc_bias_edits *b,
                       const struct msc_joint *j) {
    const struct msc_target *target = b->sites->scheme.target;
    struct msc_tail tail;
    out->end = msc_graph__end_of_tail(b->graph, target, j->outputs[0]);
    if (target->has_forms && msc_op_is_conv(j->op) &&
        msc_graph__find_tail(&tail, b->graph, target, out->end) && tail.has_known_limits) {
        out->shift = msc_tail_bias(&tail);
    }
}

static enum msc_status list_biases(struct msc_bias_edits *b) {
    const struct msc_sites *sites = b->sites;
    const struct msc_target *target = sites->scheme.target;
    b->biases = msc_arena_array(&b->arena, (size_t)(sites->n_slots - sites->n_site_slots) + 1,
                                sizeof(b->biases[0]));
    MSC_TRY(MSC_ALLOCATED(b->biases));
    for (int32_t i = sites->n_site_slots; i < sites->n_slots; i++) {
        const struct msc_joint *j = msc_graph_joint(b->graph, sites->slots[i].joint);
        struct bias bias = {.slot = i};
        if (sites->slots[i].kind == MSC_SITE_BIAS && find_factors(&bias, sites, j)) {
            bias.is_rounded = target && target->rounds_biases && bias.x != MSC_NO_ID &&
                              msc_target_is_integer(msc_target_role(target, b->graph, j));
            if (bias.is_rounded) {
                find_shift(&bias, b, j);
            }
            b->biases[b->n++] = bias;
        }
    }
    return MSC_OK;
}

enum msc_status msc_bias_edits_create(struct msc_bias_edits **out, const struct msc_graph *g,
                                      const struct msc_sites *sites) {
    struct msc_bias_edits *b = msc_alloc_zero(1, sizeof(*b));
    MSC_TRY(MSC_ALLOCATED(b));
    b->graph = g;
    b->sites = sites;
    enum msc_status status = list_biases(b);
    if (status != MSC_OK) {
        msc_bias_edits_destroy(b);
        return status;
    }
    *out = b;
    return MSC_OK;
}

void msc_bias_edits_destroy(struct msc_bias_edits *b) {
    for (size_t i = 0; b && i < b->n; i++) {
        for (struct made *m = b->biases[i].made; m; m = m->next) {
            msc_array_release(m->elements);
        }
    }
    if (b) {
        msc_arena_finish(&b->arena);
        msc_free(b);
    }
}

// ---- Making -----------------------------------------------------------------------------------

static const struct msc_array *bias_elements(const struct msc_bias_edits *b,
                                             const struct bias *bias) {
    return msc_graph_tensor(b->graph, b->sites->slots[bias->slot].tensor)->data;
}

// Elements plus shifts; `shifts` NULL: the elements unchanged.
static enum msc_status make_shifted(struct made *m, const struct msc_array *elements,
                                    const struct msc_array *shifts) {
    MSC_TRY(msc_array_create(&m->elements, MSC_DTYPE_F32, msc_array_n_dims(elements),
                             msc_array_dims(elements)));
    const float *from = msc_array_data(elements), *by = shifts ? msc_array_data(shifts) : NULL;
    float *to = msc_array_data(m->elements);
    for (int64_t c = 0; c < msc_array_n_elements(elements); c++) {
        to[c] = by ? from[c] + by[c] : from[c];
    }
    m->shifted =
        (struct msc_edit){.kind = MSC_EDIT_REPLACE, .elements = m->elements, .next = m->edit};
    msc_edit_seal(&m->shifted);
    m->edit = &m->shifted;
    return MSC_OK;
}

// Do the sums of bias and shift leave room for products in int32?
static bool fits_shift(float shift, const struct msc_array *elements,
                       const struct msc_array *shifts, const float steps[], int32_t n) {
    const float *x = msc_array_data(elements), *by = shifts ? msc_array_data(shifts) : NULL;
    for (int64_t c = 0; c < msc_array_n_elements(elements); c++) {
        double sum = (double)x[c] + (by ? (double)by[c] : 0) + (double)shift;
        if (!(fabs(sum / (double)steps[n > 1 ? c : 0]) < most_sum)) {
            return false;
        }
    }
    return true;
}

static enum msc_status make_rounded(struct msc_bias_edits *b, struct made *m,
                                    const struct msc_array *elements, float shift) {
    const struct msc_quant *of_x = msc_edit_quant(m->x), *of_w = msc_edit_quant(m->w);
    float *steps = msc_arena_array(&b->arena, (size_t)of_w->n, sizeof(steps[0]));
    MSC_TRY(MSC_ALLOCATED(steps));
    for (int32_t c = 0; c < of_w->n; c++) {
        steps[c] = of_x->scales[0] * of_w->scales[c];
    }
    if (shift != 0 && (!elements || !fits_shift(shift, elements, of_w->shifts, steps, of_w->n))) {
        shift = 0;
    }
    m->rounded = (struct msc_edit){.kind = MSC_EDIT_ROUND_BIAS,
                                   .rounding = {.n = of_w->n, .steps = steps, .shift = shift}};
    msc_edit_seal(&m->rounded);
    m->edit = &m->rounded;
    return MSC_OK;
}

static bool is_integer_edit(const struct msc_edit *e) {
    return msc_quant_is_static(msc_edit_quant(e));
}

static enum msc_status make_edit(struct msc_bias_edits *b, struct bias *bias, struct made *m) {
    const struct msc_array *elements = m->b ? m->b->elements : bias_elements(b, bias);
    const struct msc_quant *of_w = msc_edit_quant(m->w);
    if (of_w->shifts && elements &&
        msc_array_n_elements(of_w->shifts) != msc_array_n_elements(elements)) {
        return MSC_FAIL(MSC_E_STATE, "%lld shifts do not fit bias %s of %lld elements",
                        (long long)msc_array_n_elements(of_w->shifts),
                        msc_graph_tensor(b->graph, b->sites->slots[bias->slot].tensor)->name,
                        (long long)msc_array_n_elements(elements));
    }
    m->next = bias->made;
    bias->made = m;
    if (m->x) {
        MSC_TRY(make_rounded(b, m, elements, m->has_shift ? bias->shift : 0));
    }
    bool is_replaced = elements && (of_w->shifts || m->b);
    return is_replaced ? make_shifted(m, elements, of_w->shifts) : MSC_OK;
}

// Is the tensor at the end of a tail quantised in every use?
static bool is_quantised(const struct msc_bias_edits *b, int32_t tensor,
                         const struct msc_edit *const edits[]) {
    bool is_used = false;
    for (int32_t i = 0; i < b->sites->n_site_slots; i++) {
        if (b->sites->slots[i].tensor == tensor) {
            is_used = true;
            if (!is_integer_edit(edits[i])) {
                return false;
            }
        }
    }
    return is_used;
}

// The edit that replaced the elements of the bias before msc_bias_edits_fill was first called;
// NULL: the bias has the model's elements.
static const struct msc_edit *elements_before(const struct bias *bias, const struct msc_edit *now) {
    for (const struct made *m = bias->made; m; m = m->next) {
        if (m->edit == now) {
            return m->b;
        }
    }
    return now && now->kind == MSC_EDIT_REPLACE ? now : NULL;
}

enum msc_status msc_bias_edits_fill(struct msc_bias_edits *b, const struct msc_edit *edits[]) {
    for (size_t i = 0; i < b->n; i++) {
        struct bias *bias = &b->biases[i];
        const struct msc_edit *w = edits[bias->w];
        // The activation matters only if the bias is rounded.
        const struct msc_edit *x = bias->is_rounded ? edits[bias->x] : NULL;
        x = is_integer_edit(x) && is_integer_edit(w) ? x : NULL;
        if (!x && !(msc_edit_quant(w) && msc_edit_quant(w)->shifts)) {
            continue;
        }
        bool has_shift = x && bias->shift != 0 && is_quantised(b, bias->end, edits);
        const struct msc_edit *own = elements_before(bias, edits[bias->slot]);
        struct made *m = bias->made;
        while (m && (m->x != x || m->w != w || m->b != own || m->has_shift != has_shift)) {
            m = m->next;
        }
        if (!m) {
            m = msc_arena_alloc(&b->arena, sizeof(*m));
            MSC_TRY(MSC_ALLOCATED(m));
            *m = (struct made){.x = x, .w = w, .b = own, .has_shift = has_shift};
            MSC_TRY(make_edit(b, bias, m));
        }
        edits[bias->slot] = m->edit ? m->edit : edits[bias->slot];
    }
    return MSC_OK;
}

// ---- Shifts -----------------------------------------------------------------------------------

// Does the joint have a bias slot with n elements?
static bool has_bias_slot(const struct msc_graph *g, const struct msc_sites *sites, int32_t joint,
                          int64_t n) {
    for (int32_t i = sites->n_site_slots; i < sites->n_slots; i++) {
        if (sites->slots[i].kind == MSC_SITE_BIAS && sites->slots[i].joint == joint) {
            const struct msc_tensor *t = msc_graph_tensor(g, sites->slots[i].tensor);
            return t->data && t->dtype == MSC_DTYPE_F32 && msc_array_n_elements(t->data) == n;
        }
    }
    return false;
}

bool msc_bias_edits_take_shifts(const struct msc_graph *g, const struct msc_sites *sites,
                                int32_t site, int64_t n) {
    const struct msc_site *s = &sites->sites[site];
    for (int32_t k = 0; k < s->n_slots; k++) {
        if (!has_bias_slot(g, sites, sites->slots[s->slots[k]].joint, n)) {
            return false;
        }
    }
    return s->n_slots > 0;
}
