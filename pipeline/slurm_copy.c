#include "pipeline/slurm_copy.h"

#include "base/process.h"
#include "pipeline/worker_files.h"
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
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
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

enum msc_status msc_slurm_pack_files(const struct msc_session *s, const char *archive) {
    static const struct msc_bridge_def def = {.file = take_file};
    static const char *const nothing_more[] = {NULL};
    struct list list = {.bridge = {.def = &def}, .arena = &s->setup->arena};
    MSC_TRY(msc_worker_files_name(s, &list.bridge));
    const char **argv = msc_arena_array(&s->setup->arena, list.n + 8, sizeof *argv);
    MSC_TRY(argv ? MSC_OK : MSC_FAIL(MSC_E_NOMEM, "out of memory"));
    const char *const words[] = {"sh", "-c", pack_script, "sh", archive, list.record};
    memcpy(argv, words, sizeof words);
    if (list.n > 0) {
        memcpy(argv + sizeof words / sizeof words[0], list.paths, list.n * sizeof *argv);
    }
    enum msc_status status =
        msc_process_call(argv, nothing_more, PACK_S, s->setup->options.cancel, 1);
    return status == MSC_E_CANCELLED
               ? status
               : msc_status_prefix(
                     status, "--copy-to: files for the nodes cannot be packed into %s", archive);
}

// What goes wrong is told in the worker's place: its first line says no more than that it is there. $1: what.
#define SAY_NO                                                                                     \
    "no() {\n"                                                                                     \
    "    echo '{\"beat\":1}'\n"                                                                    \
    "    text=$(printf '%s' \"$1\" | tr '\\n\\t' '  ' | sed 's/[\\\\\"]/\\\\&/g')\n"               \
    "    printf '{\"error\":\"--copy-to: %s\"}\\n' \"$text\"\n"                                    \
    "    exit 1\n"                                                                                 \
    "}\n"

// In a job's allocation, on this machine. What sbcast writes is its own cause.
const char msc_slurm_copy_script[] =
    SAY_NO "archive=$1 folder=$2 name=$3 cpus=$4 on_node=$5\n"
           "shift 5\n"
           "where=\"node ${SLURM_JOB_NODELIST:-of job $SLURM_JOB_ID}\"\n"
           "why=$(sbcast --force \"$archive\" \"$folder/$name$SLURM_JOB_ID.tar\" 2>&1) ||\n"
           "    no \"the files cannot be copied to $folder on $where: is that folder there, is it "
           "yours, and has \\\n"
           "it room? ($why)\"\n"
           "exec srun --quiet --nodes=1 --ntasks=1 ${cpus:+\"$cpus\"} \\\n"
           "    sh -c \"$on_node\" sh \"$folder\" \"$name\" \"$@\"\n";

// On its node, which loses what nobody has looked at for a week, unless a job still runs in it: that holds a lock
// on its folder, whatever the age that its archive gives to that.
const char msc_slurm_node_script[] =
    SAY_NO "folder=$1 root=$1/$2$SLURM_JOB_ID\n"
           "shift 2\n"
           "where=\"node ${SLURMD_NODENAME:-$(uname -n)}\"\n"
           "find \"$folder\" -maxdepth 1 -name 'mscgym-*' -user \"$(id -un)\" -mtime +7 \\\n"
           "    -exec flock --nonblock {} rm -rf {} \\; 2>/dev/null\n"
           "trap 'trap \"\" HUP INT TERM; rm -rf \"$root\" \"$root.tar\"' EXIT\n"
           "trap 'exit 1' HUP INT TERM\n"
           "why=$(mkdir -m 700 \"$root\" 2>&1) || no \"$root cannot be made on $where ($why)\"\n"
           "exec 9<\"$root\" && flock 9 || no \"$root cannot be locked on $where\"\n"
           "why=$(tar -xf \"$root.tar\" -C \"$root\" 2>&1) || no \"the files cannot be unpacked in "
           "$root on $where ($why)\"\n"
           "rm -f \"$root.tar\"\n"
           "MSCGYM_NODE_ROOT=$root \"$@\"\n";
