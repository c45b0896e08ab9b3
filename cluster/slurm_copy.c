// Packs the files that workers under Slurm read into an archive, which `sbcast` copies to the node
// of each job.
#include "cluster/slurm_copy.h"

#include "base/process.h"
#include "cluster/bridge.h"

#include <string.h>

#define PACK_S 3600.0

// Collects the files that are named to a bridge.
struct list {
    struct msc_bridge bridge;
    struct msc_arena *arena;
    const char *record;
    const char **paths; // NULL-terminated
    size_t n;
};

static enum msc_status take_file(struct msc_bridge *bridge, const char *path, bool is_head) {
    struct list *list = (struct list *)bridge;
    // There are so few files that growing the list by one each time is cheap.
    const char **paths = msc_arena_array(list->arena, list->n + 2, sizeof *paths);
    const char *copy = msc_arena_strdup(list->arena, path);
    MSC_TRY(MSC_ALLOCATED(paths && copy));
    if (is_head) {
        list->record = copy;
        return MSC_OK;
    }
    if (list->n > 0) {
        memcpy(paths, list->paths, list->n * sizeof *paths);
    }
    paths[list->n++] = copy;
    list->paths = paths;
    return MSC_OK;
}

enum msc_status msc_slurm_pack_files(const struct msc_slurm_options *o, const char *archive) {
    static const struct msc_bridge_def def = {.file = take_file};
    static const char *const nothing_more[] = {NULL};
    struct list list = {.bridge = {.def = &def}, .arena = o->arena};
    MSC_TRY(o->name_files(o->payload, &list.bridge));
    const char **argv = msc_arena_array(o->arena, list.n + 8, sizeof *argv);
    MSC_TRY(msc_arena_status(o->arena));
    const char *const words[] = {"sh", "-c", msc_slurm_script, "sh", "pack", archive, list.record};
    memcpy(argv, words, sizeof words);
    if (list.n > 0) {
        memcpy(argv + sizeof words / sizeof words[0], list.paths, list.n * sizeof *argv);
    }
    enum msc_status status = msc_process_call(argv, nothing_more, PACK_S, o->cancel, 1);
    return status == MSC_E_CANCELLED
               ? status
               : msc_status_prefix(
                     status, "--copy-to: files for the nodes cannot be packed into %s", archive);
}
