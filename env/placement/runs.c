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

// The graph of groups first ... last.
static enum msc_status extract_run(struct msc_graph **out, const struct msc_place_runs *runs,
                                   size_t first, size_t last) {
    enum { BEFORE, INSIDE, AFTER };
    size_t n = (size_t)msc_graph_n_joints(runs->g);
    int32_t *pieces = msc_alloc_zero(n + 1, sizeof *pieces);
    MSC_TRY(MSC_ALLOCATED(pieces));
    for (size_t i = 0; i < n; i++) {
        int32_t group = runs->groups[i];
        int32_t side = group < (int32_t)first ? BEFORE : group > (int32_t)last ? AFTER : INSIDE;
        pieces[i] = group < 0 ? -1 : side;
    }
    enum msc_status status = msc_graph_extract(out, runs->g, pieces, INSIDE, "run");
    msc_free(pieces);
    return status;
}

// Backends recognise joints of bytes only if their weights are bytes.
static const struct msc_onnx_export_options as_stored = {.keeps_codes = true};

enum msc_status msc_place_write_run(struct msc_runtime_piece *out,
                                    const struct msc_place_runs *runs, size_t first, size_t last,
                                    const char *kind, struct msc_arena *arena) {
    struct msc_graph *part = NULL;
    *out = (struct msc_runtime_piece){0};
    out->model = msc_arena_printf(arena, "%s/%s_%zu_%zu.onnx", runs->folder, kind, first, last);
    MSC_TRY(MSC_ALLOCATED(out->model));
    MSC_TRY(extract_run(&part, runs, first, last));
    enum msc_status status = name_outputs(out, part, arena);
    status = status == MSC_OK ? msc_onnx_save(part, out->model, &as_stored) : status;
    msc_graph_destroy(part);
    return status;
}
