// The metric `command`: what a user's program says of a trial's model or outputs.
#include "base/file.h"
#include "base/scratch.h"
#include "data/npy.h"
#include "env/quantize_internal.h"
#include "graph/onnx/onnx.h"

static enum msc_status write_model(struct msc_command_files *files, struct msc_arena *arena,
                                   const char *folder, const struct msc_env *env,
                                   const struct msc_edit *const edits[]) {
    const struct msc_quantize *z = msc_env_state(env);
    const struct msc_onnx_export_options o = {.sites = msc_quantizer_sites(z->quantizer),
                                              .slot_edits = edits};
    files->model = msc_path_join(arena, folder, "model.onnx");
    return files->model ? msc_onnx_save(msc_env_host(env)->graph, files->model, &o)
                        : MSC_FAIL(MSC_E_NOMEM, "out of memory for a command");
}

static enum msc_status write_outputs(struct msc_command_files *files, struct msc_arena *arena,
                                     const char *folder, const struct msc_env *env,
                                     const struct msc_edit *const edits[]) {
    const struct msc_quantize *z = msc_env_state(env);
    struct msc_array_list list = {0};
    files->outputs = msc_path_join(arena, folder, "outputs.npz");
    enum msc_status status = files->outputs ? msc_distill_outputs(z->runs.distill, edits, &list)
                                            : MSC_FAIL(MSC_E_NOMEM, "out of memory for a command");
    if (status == MSC_OK) {
        status = msc_npz_save(files->outputs, &list);
    }
    msc_array_list_finish(&list);
    return status;
}

enum msc_status msc_quantize__run_command(double *out, const struct msc_env *env,
                                          const struct msc_edit *const edits[]) {
    const struct msc_quantize *z = msc_env_state(env);
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_arena arena = {0};
    struct msc_command_files files = {NULL, NULL};
    struct msc_scratch scratch = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_scratch_make(&scratch, &arena));
    if (msc_command_wants(&z->command, "{model}")) {
        MSC_TRY_OUT(write_model(&files, &arena, scratch.path, env, edits));
    }
    if (msc_command_wants(&z->command, "{outputs}")) {
        MSC_TRY_OUT(write_outputs(&files, &arena, scratch.path, env, edits));
    }
    status = msc_command_run(out, &z->command, &files, host->folder, host->cancel, 2);
out:
    msc_scratch_remove(&scratch);
    msc_arena_finish(&arena);
    return status;
}
