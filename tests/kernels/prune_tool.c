// Removes random channels of a model, by masks and by pruning. check_pruned.py compares the two.
//
//     prune_tool MODEL INPUTS.npz DENSITY SEED OUT.onnx OUT.npz
//
// Each unit of a group is kept with probability DENSITY, and at least one is kept. OUT.onnx is the
// pruned model. OUT.npz has the outputs of the pruned model, "pruned/NAME", and of the masked
// model, "masked/NAME". Prints a JSON line with the number of units, the number of removed units,
// and the remaining shares of parameters and multiply-accumulates.
#include "base/alloc.h"
#include "base/rng.h"
#include "graph/channels.h"
#include "graph/onnx/load.h"
#include "graph/onnx/onnx.h"
#include "graph/passes/bind.h"
#include "graph/passes/prune.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool {
    const char *model, *inputs, *onnx, *npz;
    double density;
    uint64_t seed;
    struct msc_arena arena;
    struct msc_graph *loaded, *whole, *small;
    struct msc_sites sites;
    struct msc_channels channels;
    struct msc_channel_masks masks;
    bool *is_gone;
    int32_t n_gone;
    struct msc_array_list feeds, results;
    struct msc_backend *backend;
};

static enum msc_status fail_memory(void) {
    return MSC_FAIL(MSC_E_NOMEM, "out of memory");
}

// ---- Choosing ---------------------------------------------------------------------------------

static void choose_group(struct tool *t, const struct msc_channel_group *group,
                         struct msc_rng *rng) {
    int32_t kept = (int32_t)msc_rng_below(rng, (uint64_t)group->n_units);
    for (int32_t i = 0; i < group->n_units; i++) {
        bool stays = msc_rng_double(rng) < t->density || i == kept;
        t->is_gone[group->first_unit + i] = !stays;
        t->n_gone += !stays;
    }
}

static enum msc_status choose(struct tool *t) {
    struct msc_rng rng;
    msc_rng_seed(&rng, t->seed, 0);
    t->is_gone = msc_arena_array(&t->arena, (size_t)t->channels.n_units, sizeof(bool));
    if (t->is_gone == NULL) {
        return fail_memory();
    }
    for (int32_t i = 0; i < t->channels.n_groups; i++) {
        choose_group(t, &t->channels.groups[i], &rng);
    }
    return MSC_OK;
}

// ---- Running ----------------------------------------------------------------------------------

struct run {
    struct tool *tool;
    const struct msc_graph *g;
    const char *prefix;
};

static enum msc_status keep(void *payload, size_t trial, size_t batch,
                            const struct msc_view values[]) {
    const struct run *r = payload;
    (void)trial;
    (void)batch;
    for (int32_t i = 0; i < msc_graph_n_outputs(r->g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(r->g, msc_graph_output(r->g, i));
        const char *name = msc_arena_printf(&r->tool->arena, "%s/%s", r->prefix, t->alias);
        struct msc_array *copy;
        if (name == NULL) {
            return fail_memory();
        }
        MSC_TRY(msc_array_create_from(&copy, values[i].dtype, values[i].n_dims, values[i].dims,
                                      values[i].data));
        enum msc_status status = msc_array_list_add(&r->tool->results, name, copy);
        msc_array_release(copy);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status make_data(struct msc_dataset **out, struct tool *t,
                                 const struct msc_graph *g) {
    size_t n = (size_t)msc_graph_n_inputs(g);
    struct msc_input_spec *specs = msc_arena_array(&t->arena, n, sizeof(specs[0]));
    const struct msc_array **arrays = msc_arena_array(&t->arena, n, sizeof(arrays[0]));
    if (specs == NULL || arrays == NULL) {
        return fail_memory();
    }
    for (size_t i = 0; i < n; i++) {
        const struct msc_tensor *x = msc_graph_tensor(g, msc_graph_input(g, (int32_t)i));
        arrays[i] = msc_array_list_find(&t->feeds, x->alias);
        if (arrays[i] == NULL) {
            return MSC_FAIL(MSC_E_INVALID, "%s: has no %s", t->inputs, x->alias);
        }
        specs[i] =
            (struct msc_input_spec){.name = x->alias, .dtype = x->dtype, .n_dims = x->n_dims};
        memcpy(specs[i].dims, x->dims, sizeof(x->dims));
    }
    return msc_dataset_create_whole(out, specs, arrays, n);
}

static enum msc_status evaluate(struct run *r, const struct msc_edit *const edits[]) {
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_dataset *data = NULL;
    struct msc_evaluator *ev = NULL;
    struct msc_eval_trial trial = {.edits = edits};
    const struct msc_sink sink = {.batch = keep, .payload = r};
    size_t n = (size_t)msc_graph_n_outputs(r->g);
    int32_t *wanted = msc_arena_array(&r->tool->arena, n, sizeof(wanted[0]));
    enum msc_status status = wanted == NULL ? fail_memory() : MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        wanted[i] = msc_graph_output(r->g, (int32_t)i);
    }
    options.backend = r->tool->backend;
    options.memory_bytes = (uint64_t)4 << 30;
    MSC_TRY_OUT(status);
    MSC_TRY_OUT(make_data(&data, r->tool, r->g));
    MSC_TRY_OUT(msc_evaluator_create(&ev, r->g, data, wanted, n, &options));
    MSC_TRY_OUT(msc_evaluator_run(ev, &trial, 1, &sink, 0));
    if (trial.status != MSC_OK) {
        status = MSC_FAIL(trial.status, "%s: %s", r->prefix, trial.message);
    }
out:
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(data);
    return status;
}

// Runs the masked and the pruned graph. The evaluator's slots are the graph's slots in the same
// order.
static enum msc_status run_both(struct tool *t) {
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    const struct msc_edit **none =
        msc_arena_array(&t->arena, (size_t)t->sites.n_slots, sizeof(none[0]));
    if (none == NULL) {
        return fail_memory();
    }
    MSC_TRY(msc_backend_open(&t->backend, "cpu", &options));
    MSC_TRY(evaluate(&(struct run){t, t->whole, "masked"}, t->masks.edits));
    return evaluate(&(struct run){t, t->small, "pruned"}, none);
}

// ---- The program ------------------------------------------------------------------------------

static enum msc_status report(struct tool *t) {
    struct msc_channel_cost whole, left;
    bool *none = msc_arena_array(&t->arena, (size_t)t->channels.n_units, sizeof(none[0]));
    if (none == NULL) {
        return fail_memory();
    }
    MSC_TRY(msc_channels_cost(&whole, &t->channels, t->whole, none));
    MSC_TRY(msc_channels_cost(&left, &t->channels, t->whole, t->is_gone));
    printf("{\"groups\": %d, \"units\": %d, \"gone\": %d, \"masks\": %d, \"parameters\": %.4f, "
           "\"macs\": %.4f}\n",
           (int)t->channels.n_groups, (int)t->channels.n_units, (int)t->n_gone, (int)t->masks.n,
           whole.parameters > 0 ? left.parameters / whole.parameters : 1,
           whole.macs > 0 ? left.macs / whole.macs : 1);
    return MSC_OK;
}

static enum msc_status run_tool(struct tool *t) {
    MSC_TRY(msc_npz_load(&t->feeds, t->inputs));
    MSC_TRY(msc_graph_load_for(&t->loaded, t->model, &t->feeds, NULL));
    MSC_TRY(msc_graph_split(&t->whole, t->loaded));
    MSC_TRY(msc_sites_find(&t->sites, t->whole, NULL));
    MSC_TRY(msc_channels_find(&t->channels, t->whole, &t->sites));
    MSC_TRY(choose(t));
    MSC_TRY(msc_channels_mask(&t->masks, &t->channels, t->whole, &t->sites, t->is_gone));
    MSC_TRY(msc_graph_prune(&t->small, t->whole, &t->channels, t->is_gone, NULL));
    MSC_TRY(msc_onnx_save(t->small, t->onnx, NULL));
    MSC_TRY(run_both(t));
    MSC_TRY(msc_npz_save(t->npz, &t->results));
    return report(t);
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: prune_tool MODEL INPUTS.npz DENSITY SEED OUT.onnx OUT.npz\n");
        return 2;
    }
    struct tool t = {.model = argv[1],
                     .inputs = argv[2],
                     .density = strtod(argv[3], NULL),
                     .seed = strtoull(argv[4], NULL, 10),
                     .onnx = argv[5],
                     .npz = argv[6]};
    enum msc_status status = run_tool(&t);
    if (status != MSC_OK) {
        fprintf(stderr, "%s\n", msc_status_message());
    }
    msc_backend_close(t.backend);
    msc_array_list_finish(&t.results);
    msc_array_list_finish(&t.feeds);
    msc_channel_masks_finish(&t.masks);
    msc_channels_finish(&t.channels);
    msc_sites_finish(&t.sites);
    msc_graph_destroy(t.small);
    msc_graph_destroy(t.whole);
    msc_graph_destroy(t.loaded);
    msc_arena_finish(&t.arena);
    return status == MSC_OK ? 0 : 1;
}
