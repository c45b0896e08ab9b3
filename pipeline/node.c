#include "pipeline/node.h"

#include "base/json.h"
#include "cluster/given_device.h"
#include "model/program_id.h"
#include "pipeline/session.h"
#include "pipeline/worker_code.h"
#include "cluster/node.h"

#include <stdlib.h>
#include <string.h>

struct serving {
    int output;
    size_t place; // among the workers of this machine
    struct msc_arena arena;
    const char *build;
    struct msc_setup *setup;    // created on the last init message
    struct msc_session session; // opened in `setup`
    struct msc_processor_options options;
};

// *out is NULL if the member is missing.
static enum msc_status keep_text(const char **out, struct msc_arena *arena, const cJSON *object,
                                 const char *key) {
    const char *text = msc_json_text_of(object, key);
    *out = text ? msc_arena_strdup(arena, text) : NULL;
    return text && !*out ? MSC_FAIL(MSC_E_NOMEM, "out of memory") : MSC_OK;
}

static enum msc_status read_share(struct msc_processor_options *o, struct msc_arena *arena,
                                  const cJSON *init) {
    int64_t n_threads, n_bytes = 0;
    MSC_TRY(msc_json_get_i64(&n_threads, init, "threads", "init"));
    if (msc_json_get(init, "memory")) {
        MSC_TRY(msc_json_get_i64(&n_bytes, init, "memory", "init"));
    }
    if (n_threads < 0 || n_threads > 4096 || n_bytes < 0) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "init: \"threads\" is %lld: expected 0 to 4096, and \"memory\" of 0 bytes or more",
            (long long)n_threads);
    }
    o->n_threads = (int)n_threads;
    o->memory_bytes = (uint64_t)n_bytes;
    MSC_TRY(keep_text(&o->device, arena, init, "device"));
    MSC_TRY(keep_text(&o->node_path, arena, init, "node_path"));
    return keep_text(&o->isa, arena, init, "isa");
}

// The same path may name another library on this machine, so the contents are compared.
static enum msc_status check_library(struct msc_setup *setup, const char *wanted) {
    const struct msc_config_entry *e = &setup->config->entries[0];
    const char *own;
    MSC_TRY(msc_worker_code_hash(&own, &setup->arena, e));
    return !own || (wanted && strcmp(own, wanted) == 0)
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE, "the environment's library in %s differs from the search's",
                          e->folder);
}

// Chooses the GPU that this worker opens.
static enum msc_status choose_device(struct serving *s, const cJSON *init) {
    const char **device = &s->setup->config->device;
    struct msc_vulkan_device devices[MSC_VULKAN_MAX_DEVICES];
    if (cJSON_IsTrue(msc_json_get(init, "given_gpu"))) {
        return msc_given_device(device, &s->arena, *device, s->options.cancel);
    }
    if (s->place == 0 || strcmp(*device, "cpu") == 0) {
        return MSC_OK;
    }
    int n = msc_vulkan_list(devices, MSC_VULKAN_MAX_DEVICES);
    return msc_place_device(device, &s->arena, *device, s->place, devices, n);
}

static void close_last(struct serving *s) {
    msc_session_close(&s->session);
    msc_setup_destroy(s->setup);
    s->setup = NULL;
}

// Opens the environment of the search from its record.
static enum msc_status open_subject(void *payload, struct msc_node_subject *out,
                                    const cJSON *init) {
    struct serving *s = payload;
    struct msc_processor_options o = s->options;
    const char *record;
    MSC_TRY(msc_json_get_text(&record, init, "record", "init"));
    MSC_TRY(read_share(&o, &s->arena, init));
    close_last(s);
    // A folder that contains the search's files under their absolute paths.
    const char *root = getenv("MSCGYM_NODE_ROOT");
    const char *path = msc_arena_printf(&s->arena, "%s%s", root ? root : "", record);
    MSC_TRY(MSC_ALLOCATED(path));
    MSC_TRY(msc_setup_open_record(&s->setup, path, &o));
    MSC_TRY(choose_device(s, init));
    MSC_TRY(check_library(s->setup, msc_json_text_of(init, "library")));
    MSC_TRY(msc_setup_load(s->setup, MSC_SETUP_LOOK));
    MSC_TRY(msc_session_open(&s->session, s->setup, 0, MSC_SETUP_LOOK));
    *out = (struct msc_node_subject){
        .env = s->session.env,
        .program = msc_program_name(),
        .build = s->build,
        .numerics = msc_setup_numerics(s->setup),
        .trial_seconds = s->session.entry->trial_seconds,
    };
    return MSC_OK;
}

static bool say(void *payload, const char *line, size_t length) {
    const struct serving *s = payload;
    return msc_node_write_line(s->output, line, length, true);
}

enum msc_status msc_node_serve(int input, int output, size_t place, struct msc_worker *worker,
                               const struct msc_cancel *cancel, const struct msc_log *log) {
    // Like a dry run, a node starts no agent, so the agent may be a program.
    struct serving s = {
        .output = output,
        .place = place,
        .options = {
            .is_dry_run = true, .is_node = true, .log = log, .cancel = cancel, .worker = worker}};
    struct msc_node *node = NULL;
    const struct msc_node_options o = {
        .open = open_subject, .say = say, .payload = &s, .worker = worker, .cancel = cancel};
    enum msc_status status = msc_program_build(&s.build, &s.arena);
    if (status == MSC_OK) {
        status = msc_node_create(&node, &o);
    }
    if (status == MSC_OK) {
        status = msc_node_run(node, input);
    }
    msc_node_destroy(node);
    close_last(&s);
    msc_arena_finish(&s.arena);
    return status;
}
