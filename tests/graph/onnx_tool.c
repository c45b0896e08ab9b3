// Reads an ONNX model and writes it again. check_export.py runs this program:
//
//     onnx_tool IN OUT [--keep-batch-norm] [--bind SYMBOL=N]... [--quantize BITS SEED]
//
// With --quantize most slots get plausible quantisation parameters drawn from the seed. Each edit
// is printed as a JSON line: {"value", "kind", "bits", "low", "high", "axis", "scales",
// "zero_points"}.
#include "base/alloc.h"
#include "base/rng.h"
#include "base/str.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BINDINGS 8

struct arguments {
    const char *in, *out;
    struct msc_onnx_import_options import;
    struct msc_binding bindings[MAX_BINDINGS];
    size_t n_bindings;
    int32_t bits; // 0: not quantised
    uint64_t seed;
};

static int parse(struct arguments *a, int argc, char **argv) {
    if (argc < 3) {
        return 0;
    }
    a->in = argv[1];
    a->out = argv[2];
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--keep-batch-norm") == 0) {
            a->import.keep_batch_norm = true;
        } else if (strcmp(argv[i], "--bind") == 0 && i + 1 < argc && a->n_bindings < MAX_BINDINGS) {
            char *value = strrchr(argv[++i], '=');
            if (value == NULL) {
                return 0;
            }
            *value = '\0';
            a->bindings[a->n_bindings].symbol = argv[i];
            a->bindings[a->n_bindings++].value = strtoll(value + 1, NULL, 10);
        } else if (strcmp(argv[i], "--quantize") == 0 && i + 2 < argc) {
            a->bits = (int32_t)strtol(argv[++i], NULL, 10);
            a->seed = strtoull(argv[++i], NULL, 10);
        } else {
            return 0;
        }
    }
    return 1;
}

// Writes the largest magnitude of each channel along `axis` (-1: of all elements) to `most`,
// which the caller has zeroed.
static void find_largest(float most[], const struct msc_array *data, int axis) {
    const int64_t *dims = msc_array_dims(data);
    int64_t inner = 1;
    for (int d = msc_array_n_dims(data) - 1; axis >= 0 && d > axis; d--) {
        inner *= dims[d];
    }
    const float *x = msc_array_data(data);
    for (int64_t i = 0; i < msc_array_n_elements(data); i++) {
        int64_t channel = axis < 0 ? 0 : i / inner % dims[axis];
        most[channel] = fmaxf(most[channel], fabsf(x[i]));
    }
}

// A symmetric edit, with one scale per output channel if the weight has a channel axis.
static struct msc_edit *weight_edit(struct msc_arena *arena, const struct msc_slot *slot,
                                    const struct msc_tensor *t, int32_t bits) {
    struct msc_edit *edit = msc_arena_alloc(arena, sizeof(*edit));
    struct msc_quant *q = &edit->quant;
    q->bits = bits;
    q->high = (1 << (bits - 1)) - 1;
    q->low = -q->high;
    q->axis = slot->channel_axis;
    q->n = q->axis < 0 ? 1 : (int32_t)t->dims[q->axis];
    float *scales = msc_arena_array(arena, (size_t)q->n, sizeof(scales[0]));
    q->zero_points = msc_arena_array(arena, (size_t)q->n, sizeof(int32_t));
    find_largest(scales, t->data, q->axis);
    for (int32_t i = 0; i < q->n; i++) {
        scales[i] = scales[i] > 0.0f ? scales[i] / (float)q->high : 1.0f;
    }
    q->scales = scales;
    msc_edit_seal(edit);
    return edit;
}

// A random edit. One edit in three is symmetric.
static struct msc_edit *activation_edit(struct msc_arena *arena, struct msc_rng *rng,
                                        int32_t bits) {
    struct msc_edit *edit = msc_arena_alloc(arena, sizeof(*edit));
    struct msc_quant *q = &edit->quant;
    float *scale = msc_arena_alloc(arena, sizeof(*scale));
    int32_t *zero_point = msc_arena_alloc(arena, sizeof(*zero_point));
    bool is_symmetric = msc_rng_below(rng, 3) == 0;
    q->bits = bits;
    q->low = is_symmetric ? -(1 << (bits - 1)) : 0;
    q->high = is_symmetric ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    q->axis = -1;
    q->n = 1;
    *scale = (float)((2.0 + 6.0 * msc_rng_double(rng)) / ((1 << bits) - 1));
    *zero_point = is_symmetric ? 0 : (int32_t)msc_rng_below(rng, (uint64_t)q->high / 2 + 1);
    q->scales = scale;
    q->zero_points = zero_point;
    msc_edit_seal(edit);
    return edit;
}

static void print_edit(const struct msc_tensor *t, const struct msc_slot *slot,
                       const struct msc_quant *q) {
    struct msc_str text = {0};
    bool is_weight = slot->kind == MSC_SITE_WEIGHT;
    msc_str_printf(&text, "{\"value\":\"%s\",\"kind\":\"%s\",\"bits\":%d,\"low\":%d,\"high\":%d,",
                   is_weight || t->alias[0] == '\0' ? t->name : t->alias,
                   is_weight ? "weight" : "activation", q->bits, q->low, q->high);
    msc_str_printf(&text, "\"axis\":%d,\"scales\":[", q->axis);
    for (int32_t i = 0; i < q->n; i++) {
        msc_str_append(&text, i == 0 ? "" : ",");
        msc_str_float(&text, q->scales[i]);
    }
    msc_str_append(&text, "],\"zero_points\":[");
    for (int32_t i = 0; i < q->n; i++) {
        msc_str_printf(&text, "%s%d", i == 0 ? "" : ",", q->zero_points[i]);
    }
    printf("%s]}\n", msc_str_text(&text));
    msc_str_finish(&text);
}

// The slots of a tensor share one edit, except that every fifth slot gets an edit of its own and
// every seventh stays float.
static const struct msc_edit **make_edits(struct msc_arena *arena, const struct msc_graph *g,
                                          const struct msc_sites *sites,
                                          const struct arguments *a) {
    struct msc_rng rng;
    msc_rng_seed(&rng, a->seed, 0);
    size_t n_tensors = (size_t)msc_graph_n_tensors(g);
    const struct msc_edit **by_tensor = msc_arena_array(arena, n_tensors, sizeof(*by_tensor));
    const struct msc_edit **edits = msc_arena_array(arena, (size_t)sites->n_slots, sizeof(*edits));
    for (int32_t i = 0; i < sites->n_site_slots; i++) {
        const struct msc_slot *slot = &sites->slots[i];
        const struct msc_tensor *t = msc_graph_tensor(g, slot->tensor);
        if (i % 7 == 6) {
            continue;
        }
        const struct msc_edit *edit = by_tensor[slot->tensor];
        if (slot->kind == MSC_SITE_WEIGHT && edit == NULL) {
            edit = weight_edit(arena, slot, t, a->bits);
        } else if (slot->kind == MSC_SITE_ACTIVATION && (edit == NULL || i % 5 == 4)) {
            edit = activation_edit(arena, &rng, a->bits);
        }
        by_tensor[slot->tensor] = edit;
        edits[i] = edit;
        print_edit(t, slot, msc_edit_quant(edit));
    }
    return edits;
}

static enum msc_status save(const struct msc_graph *fused, const struct arguments *a) {
    struct msc_arena arena = {0};
    struct msc_graph *split = NULL;
    const struct msc_graph *g = fused;
    struct msc_sites sites = {0};
    static const char *const metadata[1][2] = {{"mscgym.test", "check_export"}};
    struct msc_onnx_export_options options = {.metadata = metadata, .n_metadata = 1};
    enum msc_status status = MSC_OK;
    if (a->bits > 0) {
        MSC_TRY_OUT(msc_graph_split(&split, fused));
        g = split;
        MSC_TRY_OUT(msc_sites_find(&sites, g, NULL));
        options.sites = &sites;
        options.slot_edits = make_edits(&arena, g, &sites, a);
    }
    MSC_TRY_OUT(msc_onnx_save(g, a->out, &options));
out:
    msc_sites_finish(&sites);
    msc_graph_destroy(split);
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status convert(const struct arguments *a) {
    struct msc_graph *g = NULL, *bound = NULL;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_onnx_load(&g, a->in, &a->import));
    if (a->n_bindings > 0) {
        MSC_TRY_OUT(msc_graph_bind(&bound, g, a->bindings, a->n_bindings));
    }
    MSC_TRY_OUT(save(bound == NULL ? g : bound, a));
out:
    msc_graph_destroy(bound);
    msc_graph_destroy(g);
    return status;
}

int main(int argc, char **argv) {
    struct arguments a = {0};
    if (!parse(&a, argc, argv)) {
        fprintf(stderr, "usage: onnx_tool IN OUT [--keep-batch-norm] [--bind SYMBOL=N]... "
                        "[--quantize BITS SEED]\n");
        return 2;
    }
    if (convert(&a) != MSC_OK) {
        fprintf(stderr, "%s\n", msc_status_message());
        return 1;
    }
    return 0;
}
