#include "env/placement/runs.h"

#include "graph/onnx/onnx.h"
#include "graph/passes/extract.h"

#include <string.h>

enum msc_status msc_place_groups(int32_t groups[], const struct msc_graph *g,
                                 const struct msc_place_table *p) {
    size_t next = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        groups[i] = -1;
        if (msc_graph_is_shared(g, i)) {
            continue;
        }
        const char *name = msc_graph_joint(g, i)->name;
        next += next < p->n_groups && strcmp(name, p->groups[next].name) == 0;
        groups[i] = (int32_t)next - 1;
        if (next == 0) {
            break;
        }
    }
    return next == p->n_groups ? MSC_OK
                               : MSC_FAIL(MSC_E_INVALID,
                                          "placement: the table is of another network: it has no "
                                          "joint %s where a group begins; measure again",
                                          p->groups[next].name);
}

static enum msc_status name_outputs(struct msc_runtime_piece *out, const struct msc_graph *part,
                                    struct msc_arena *arena) {
    size_t n = (size_t)msc_graph_n_outputs(part);
    const char **names = msc_arena_array(arena, n + 1, sizeof *names);
    MSC_TRY(MSC_ALLOCATED(names));
    for (size_t i = 0; i < n; i++) {
        int32_t tensor = msc_graph_output(part, (int32_t)i);
        names[i] = msc_arena_strdup(arena, msc_tensor_label(msc_graph_tensor(part, tensor)));
        MSC_TRY(MSC_ALLOCATED(names[i]));
    }
    out->outputs = names;
    out->n_outputs = n;
    return MSC_OK;
}

// Gives the last joint that the copy of a quantiser adds the name of the tensor at the cut.
static enum msc_status rename_end(struct msc_graph *g, const int32_t ends[], size_t last,
                                  struct msc_arena *arena) {
    int32_t cut = MSC_NO_ID, end = MSC_NO_ID;
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        if (ends[i] == (int32_t)last) {
            cut = cut == MSC_NO_ID ? j->inputs[0] : cut;
            end = j->outputs[0];
        }
    }
    if (end == MSC_NO_ID) {
        return MSC_OK;
    }
    const char *label = msc_arena_strdup(arena, msc_tensor_label(msc_graph_tensor(g, cut)));
    MSC_TRY(MSC_ALLOCATED(label));
    const char *inner = msc_arena_printf(arena, "%s_unrounded", label);
    MSC_TRY(MSC_ALLOCATED(inner));
    MSC_TRY(msc_graph_set_alias(g, cut, inner));
    return msc_graph_set_alias(g, end, label);
}

static enum msc_status extract(struct msc_graph **out, const struct msc_place_network *from,
                               size_t first, size_t last, const char *name,
                               struct msc_arena *arena) {
    enum { BEFORE, INSIDE, AFTER };
    struct msc_graph *g = NULL;
    size_t n = (size_t)msc_graph_n_joints(from->g);
    int32_t *pieces = msc_arena_array(arena, n + 1, sizeof *pieces);
    MSC_TRY(MSC_ALLOCATED(pieces));
    for (size_t i = 0; i < n; i++) {
        int32_t group = from->groups[i];
        group = from->ends && from->ends[i] == (int32_t)last ? (int32_t)last : group;
        int32_t side = group < (int32_t)first ? BEFORE : group > (int32_t)last ? AFTER : INSIDE;
        pieces[i] = group < 0 ? -1 : side;
    }
    if (!from->ends) {
        return msc_graph_extract(out, from->g, pieces, INSIDE, name);
    }
    MSC_TRY(msc_graph_clone(&g, from->g));
    enum msc_status status = rename_end(g, from->ends, last, arena);
    status = status == MSC_OK ? msc_graph_extract(out, g, pieces, INSIDE, name) : status;
    msc_graph_destroy(g);
    return status;
}

enum msc_status msc_place_extract_run(struct msc_graph **out, const struct msc_place_network *from,
                                      size_t first, size_t last, const char *name) {
    struct msc_arena arena = {0};
    enum msc_status status = extract(out, from, first, last, name, &arena);
    msc_arena_finish(&arena);
    return status;
}

// Backends recognise joints of bytes only if their weights are bytes.
static const struct msc_onnx_export_options as_stored = {.keeps_codes = true};

enum msc_status msc_place_write_run(struct msc_runtime_piece *out,
                                    const struct msc_place_runs *runs, size_t variant, size_t first,
                                    size_t last, const char *kind, struct msc_arena *arena) {
    struct msc_graph *part = NULL;
    const char *number = variant > 0 ? msc_arena_printf(arena, "%zu", variant) : "";
    MSC_TRY(MSC_ALLOCATED(number));
    *out = (struct msc_runtime_piece){0};
    out->model =
        msc_arena_printf(arena, "%s/%s%s_%zu_%zu.onnx", runs->folder, kind, number, first, last);
    MSC_TRY(MSC_ALLOCATED(out->model));
    MSC_TRY(msc_place_extract_run(&part, &runs->networks[variant], first, last, "run"));
    enum msc_status status = name_outputs(out, part, arena);
    status = status == MSC_OK ? msc_onnx_save(part, out->model, &as_stored) : status;
    msc_graph_destroy(part);
    return status;
}
