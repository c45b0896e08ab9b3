#include "env/metric_command.h"

#include "base/file.h"
#include "base/scratch.h"
#include "data/npy.h"
#include "data/safetensors.h"

static enum msc_status make_path(const char **out, struct msc_arena *arena, const char *folder,
                                 const char *name) {
    *out = msc_path_join(arena, folder, name);
    return MSC_ALLOCATED(*out);
}

static enum msc_status write_outputs(const char *path, const struct msc_metric_command *c) {
    struct msc_array_list list = {0};
    enum msc_status status = msc_distill_outputs(c->distill, c->edits, &list);
    if (status == MSC_OK) {
        status = c->command->program ? msc_safetensors_save(path, &list, NULL, 0)
                                     : msc_npz_save(path, &list);
    }
    msc_array_list_finish(&list);
    return status;
}

enum msc_status msc_metric_command_run(double *out, const struct msc_metric_command *c,
                                       const struct msc_env_host *host) {
    struct msc_arena arena = {0};
    struct msc_command_files files = {NULL, NULL};
    struct msc_scratch scratch = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_scratch_make(&scratch, &arena));
    if (msc_command_wants(c->command, "{model}")) {
        MSC_TRY_OUT(make_path(&files.model, &arena, scratch.path, "model.onnx"));
        MSC_TRY_OUT(c->save(files.model, c->payload));
    }
    if (msc_command_wants(c->command, "{outputs}")) {
        const char *name = c->command->program ? "outputs.safetensors" : "outputs.npz";
        MSC_TRY_OUT(make_path(&files.outputs, &arena, scratch.path, name));
        MSC_TRY_OUT(write_outputs(files.outputs, c));
    }
    status = msc_command_run(out, c->command, &files, host->folder, host->cancel, 2);
out:
    msc_scratch_remove(&scratch);
    msc_arena_finish(&arena);
    return status;
}
