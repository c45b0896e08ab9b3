// Lists the arrays of weights.safetensors.
#include "codegen/codegen_internal.h"

#include "base/alloc.h"
#include "data/array_codes.h"

const char *msc_codegen__prefix(struct msc_arena *arena, const char *prefix,
                                const struct msc_joint *joint, int32_t body) {
    return msc_arena_printf(arena, "%s%s/%d/", prefix, joint->name, (int)body);
}

// Adds an array under the name PREFIX NAME ENDING.
static enum msc_status add(struct msc_array_list *out, const char *prefix, const char *name,
                           const char *ending, const struct msc_array *array) {
    struct msc_arena arena = {0};
    const char *whole = msc_arena_printf(&arena, "%s%s%s", prefix, name, ending);
    enum msc_status status = MSC_ALLOCATED(whole);
    if (status == MSC_OK) {
        status = msc_array_list_add(out, whole, array);
    }
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status add_weight(struct msc_array_list *out, const struct msc_tensor *t,
                                  const char *prefix) {
    if (t->data == NULL) {
        return MSC_FAIL(MSC_E_STATE, "weight '%s' has no elements", t->name);
    }
    const struct msc_array_codes *codes = msc_array_codes_of(t->data);
    MSC_TRY(add(out, prefix, t->name, "", t->data));
    if (codes != NULL) {
        MSC_TRY(add(out, prefix, t->name, ":scales", codes->scales));
    }
    return codes != NULL && codes->zero_points != NULL
               ? add(out, prefix, t->name, ":zero_points", codes->zero_points)
               : MSC_OK;
}

static enum msc_status add_body(struct msc_array_list *out, const struct msc_joint *j, int32_t body,
                                const char *prefix) {
    struct msc_arena arena = {0};
    const char *inner = msc_codegen__prefix(&arena, prefix, j, body);
    enum msc_status status = MSC_ALLOCATED(inner);
    if (status == MSC_OK) {
        status = msc_codegen__list_weights(out, j->graphs[body], inner);
    }
    msc_arena_finish(&arena);
    return status;
}

enum msc_status msc_codegen__list_weights(struct msc_array_list *out, const struct msc_graph *g,
                                          const char *prefix) {
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        MSC_TRY(t->producer == MSC_NO_ID ? add_weight(out, t, prefix) : MSC_OK);
    }
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t k = 0; k < j->n_graphs; k++) {
            MSC_TRY(add_body(out, j, k, prefix));
        }
    }
    return MSC_OK;
}
