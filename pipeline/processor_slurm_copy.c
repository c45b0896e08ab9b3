// Files of workers under Slurm where nodes share no path with this machine: an archive that `sbcast` takes to
// each job's node.
#include "pipeline/processor_internal.h"

#include "base/process.h"
#include "search/bridge.h"

#include <string.h>

#define PACK_S 3600.0

// Those that a bridge is told of.
struct list {
    struct msc_bridge bridge;
    struct msc_arena *arena;
    const char *record;
    const char **paths; // NULL-terminated
    size_t n;
};

static enum msc_status take_file(struct msc_bridge *bridge, const char *path, bool is_head) {
    struct list *list = (struct list *)bridge;
    // Few enough that growing one by one does not matter.
    const char **paths = msc_arena_array(list->arena, list->n + 2, sizeof *paths);
    const char *copy = msc_arena_strdup(list->arena, path);
    if (!paths || !copy) {
        return msc_processor__no_memory();
    }
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

// Everything by its absolute path; of the record, which grows, the first line.
static const char pack_script[] = "set -e\n"
                                  "archive=$1 record=$2\n"
                                  "shift 2\n"
                                  "folder=$(dirname \"$archive\")\n"
                                  "stage=$(mktemp -d \"$folder/XXXXXX\")\n"
                                  "trap 'rm -rf \"$stage\"' EXIT\n"
                                  "mkdir -p \"$stage$(dirname \"$record\")\"\n"
                                  "head -n 1 \"$record\" >\"$stage$record\"\n"
                                  "for file; do\n"
                                  "    mkdir -p \"$stage$(dirname \"$file\")\"\n"
                                  "    [ -e \"$stage$file\" ] || ln -s \"$file\" \"$stage$file\"\n"
                                  "done\n"
                                  "tar -chf \"$archive\" -C \"$stage\" .\n";

enum msc_status msc_processor__pack_files(struct msc_processor *p, const char *archive) {
    static const struct msc_bridge_def def = {.file = take_file};
    static const char *const nothing_more[] = {NULL};
    struct list list = {.bridge = {.def = &def}, .arena = &p->arena};
    MSC_TRY(msc_processor__name_files(p, &list.bridge));
    const char **argv = msc_arena_array(&p->arena, list.n + 8, sizeof *argv);
    MSC_TRY(argv ? MSC_OK : msc_processor__no_memory());
    const char *const words[] = {"sh", "-c", pack_script, "sh", archive, list.record};
    memcpy(argv, words, sizeof words);
    if (list.n > 0) {
        memcpy(argv + sizeof words / sizeof words[0], list.paths, list.n * sizeof *argv);
    }
    enum msc_status status = msc_process_call(argv, nothing_more, PACK_S, p->options.cancel, 1);
    return status == MSC_E_CANCELLED
               ? status
               : msc_status_prefix(
                     status, "--copy-to: files for the nodes cannot be packed into %s", archive);
}

// In a job's allocation, on this machine.
const char msc_processor__copy_script[] =
    "archive=$1 folder=$2 name=$3 cpus=$4 on_node=$5\n"
    "shift 5\n"
    "sbcast --force \"$archive\" \"$folder/$name$SLURM_JOB_ID.tar\" &&\n"
    "exec srun --quiet --nodes=1 --ntasks=1 ${cpus:+\"$cpus\"} \\\n"
    "    sh -c \"$on_node\" sh \"$folder\" \"$name\" \"$@\"\n";

// On its node, which loses what nobody has looked at for a week, unless a job still runs in it: that holds a lock
// on its folder, whatever the age that its archive gives to that.
const char msc_processor__node_script[] =
    "folder=$1 root=$1/$2$SLURM_JOB_ID\n"
    "shift 2\n"
    "find \"$folder\" -maxdepth 1 -name 'mscgym-*' -user \"$(id -un)\" -mtime +7 \\\n"
    "    -exec flock --nonblock {} rm -rf {} \\; 2>/dev/null\n"
    "trap 'rm -rf \"$root\" \"$root.tar\"' EXIT\n"
    "trap 'exit 1' HUP INT TERM\n"
    "mkdir -m 700 \"$root\" && exec 9<\"$root\" && flock 9 || exit 1\n"
    "tar -xf \"$root.tar\" -C \"$root\" || exit 1\n"
    "rm -f \"$root.tar\"\n"
    "MSCGYM_NODE_ROOT=$root \"$@\"\n";
