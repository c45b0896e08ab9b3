#include "tools/runtime_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/str.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "mscgym-runtime"
#define VARIABLE "MSCGYM_RUNTIME"
#define PROTOCOL 1
#define STOP_GRACE_S 2.0
#define NOTE_BYTES 512

struct msc_runtime {
    struct msc_arena arena;
    struct msc_process *process; // NULL: the program failed and was ended
    double timeout_s;
    struct msc_runtime_host host;
    struct msc_str request; // reused to save allocations
    char note[NOTE_BYTES];  // the program's last progress note; "" if none
};

// ---- The program ------------------------------------------------------------------------------

// Splits a command at blanks, unless the whole text is the path of a file.
static enum msc_status split_command(const char **argv[], const char *text,
                                     struct msc_arena *arena) {
    size_t n = 0;
    const char **words = msc_arena_array(arena, strlen(text) / 2 + 2, sizeof *words);
    MSC_TRY(MSC_ALLOCATED(words));
    if (msc_file_exists(text)) {
        words[n++] = text;
        text = "";
    }
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        words[n] = msc_arena_strndup(arena, text, length);
        MSC_TRY(MSC_ALLOCATED(words[n++]));
        text += length;
    }
    words[n] = NULL;
    *argv = words;
    return MSC_OK;
}

static enum msc_status find_command(const char **argv[], struct msc_arena *arena) {
    const char *named = getenv(VARIABLE);
    if (named && named[strspn(named, " ")]) {
        return split_command(argv, named, arena);
    }
    const char **words = msc_arena_array(arena, 2, sizeof *words);
    char *folder = msc_machine_program_folder(arena);
    char *beside = folder ? msc_path_join(arena, folder, PROGRAM) : NULL;
    MSC_TRY(MSC_ALLOCATED(words));
    words[0] = beside && msc_file_exists(beside) ? beside : PROGRAM;
    words[1] = NULL;
    *argv = words;
    return MSC_OK;
}

// ---- A request and its answer -----------------------------------------------------------------

// Waits for the answer. Lines with only a note report progress and reset the timeout.
static enum msc_status runtime_answer(struct msc_runtime *r, cJSON **answer) {
    for (;;) {
        cJSON *line = NULL;
        MSC_TRY(msc_process_answer(r->process, &line, r->timeout_s));
        const cJSON *note = msc_json_get(line, "note");
        if (!note) {
            *answer = line;
            return MSC_OK;
        }
        const char *text = cJSON_IsString(note) ? note->valuestring : "";
        size_t length = strnlen(text, NOTE_BYTES - 1);
        memcpy(r->note, text, length);
        r->note[length] = '\0';
        cJSON_Delete(line);
    }
}

enum msc_status msc_runtime__fail(struct msc_runtime *r, enum msc_status status,
                                  const char *method) {
    status = status == MSC_E_CANCELLED ? status : msc_status_prefix(status, PROGRAM ", %s", method);
    if (status == MSC_E_STATE) {
        return status;
    }
    if (status != MSC_E_CANCELLED && r->note[0]) {
        status = MSC_FAIL(status, "%s; its last note was \"%s\"", msc_status_message(), r->note);
    }
    msc_process_stop(r->process, 0.0);
    r->process = NULL;
    return status;
}

enum msc_status msc_runtime__exchange(struct msc_runtime *r, cJSON *request, const char *method,
                                      cJSON **answer) {
    enum msc_status status = msc_json_add_text(request, "method", method);
    if (status == MSC_OK) {
        msc_str_clear(&r->request);
        msc_json_write(&r->request, request);
        status = msc_str_status(&r->request);
    }
    cJSON_Delete(request);
    MSC_TRY(status);
    if (!r->process) {
        return MSC_FAIL(MSC_E_STATE, PROGRAM ", %s: the program failed earlier and was ended",
                        method);
    }
    r->note[0] = '\0';
    status = msc_process_request(r->process, &r->request, r->timeout_s);
    if (status == MSC_OK) {
        status = runtime_answer(r, answer);
    }
    return status == MSC_OK ? MSC_OK : msc_runtime__fail(r, status, method);
}

// ---- Discovery --------------------------------------------------------------------------------

// Copies an optional string into the arena; false if there is not enough memory.
static bool copy_text(const char **out, const cJSON *object, const char *key,
                      struct msc_arena *arena) {
    const cJSON *text = msc_json_get(object, key);
    *out = cJSON_IsString(text) ? msc_arena_strdup(arena, text->valuestring) : NULL;
    return !cJSON_IsString(text) || *out;
}

static enum msc_status read_found(struct msc_runtime_found *out, const cJSON *item,
                                  struct msc_arena *arena) {
    const char *name = NULL;
    MSC_TRY(msc_json_get_text(&name, item, "name", "answer"));
    if (!copy_text(&out->name, item, "name", arena) ||
        !copy_text(&out->version, item, "version", arena) ||
        !copy_text(&out->missing, item, "missing", arena)) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    out->runs_chains = !cJSON_IsFalse(msc_json_get(item, "chains"));
    out->is_slow = cJSON_IsTrue(msc_json_get(item, "slow"));
    if (!out->version == !out->missing) {
        return MSC_FAIL(MSC_E_FORMAT, "answer: %s must have \"version\" or \"missing\"", name);
    }
    return MSC_OK;
}

static enum msc_status read_features(struct msc_runtime *r, const cJSON *features) {
    struct msc_runtime_host *host = &r->host;
    host->features = msc_arena_array(&r->arena, (size_t)cJSON_GetArraySize(features) + 1,
                                     sizeof host->features[0]);
    MSC_TRY(MSC_ALLOCATED(host->features));
    const cJSON *item;
    cJSON_ArrayForEach(item, features) {
        if (!cJSON_IsString(item)) {
            return MSC_FAIL(MSC_E_FORMAT, "answer: feature %zu is not a string", host->n_features);
        }
        const char *copy = msc_arena_strdup(&r->arena, item->valuestring);
        MSC_TRY(MSC_ALLOCATED(copy));
        host->features[host->n_features++] = copy;
    }
    return MSC_OK;
}

static enum msc_status read_host(struct msc_runtime *r, const cJSON *answer) {
    struct msc_runtime_host *host = &r->host;
    int64_t protocol = 0;
    int64_t n_threads = 0;
    const char *processor = NULL;
    const cJSON *features = NULL;
    const cJSON *runtimes = NULL;
    MSC_TRY(msc_json_get_i64(&protocol, answer, "protocol", "answer"));
    if (protocol != PROTOCOL) {
        return MSC_FAIL(
            MSC_E_FORMAT,
            "the program uses protocol %lld, expected %d; install both programs from one release",
            (long long)protocol, PROTOCOL);
    }
    MSC_TRY(msc_json_get_text(&processor, answer, "processor", "answer"));
    MSC_TRY(msc_json_get_i64(&n_threads, answer, "threads", "answer"));
    MSC_TRY(msc_json_get_array(&features, answer, "features", "answer"));
    MSC_TRY(msc_json_get_array(&runtimes, answer, "runtimes", "answer"));
    if (n_threads < 1 || n_threads > INT_MAX) {
        return MSC_FAIL(MSC_E_FORMAT, "answer: threads is %lld, out of range",
                        (long long)n_threads);
    }
    host->n_threads = (int)n_threads;
    host->processor = msc_arena_strdup(&r->arena, processor);
    host->found =
        msc_arena_array(&r->arena, (size_t)cJSON_GetArraySize(runtimes) + 1, sizeof host->found[0]);
    MSC_TRY(MSC_ALLOCATED(host->processor && host->found));
    const cJSON *item;
    cJSON_ArrayForEach(item, runtimes) {
        MSC_TRY(read_found(&host->found[host->n_found], item, &r->arena));
        host->n_found++;
    }
    const cJSON *own = msc_json_get(answer, "own"); // an older program has none
    MSC_TRY(own ? read_found(&host->own, own, &r->arena) : MSC_OK);
    return read_features(r, features);
}

static enum msc_status ask_host(struct msc_runtime *r, bool has_own) {
    cJSON *request = cJSON_CreateObject(), *answer = NULL;
    enum msc_status status = request && has_own ? msc_json_add_bool(request, "own", true) : MSC_OK;
    if (status != MSC_OK) {
        cJSON_Delete(request);
        return status;
    }
    MSC_TRY(msc_runtime__exchange(r, request, "hello", &answer));
    status = read_host(r, answer);
    cJSON_Delete(answer);
    return status == MSC_OK ? MSC_OK : msc_status_prefix(status, PROGRAM ", hello");
}

enum msc_status msc_runtime_start(struct msc_runtime **out,
                                  const struct msc_runtime_options *options) {
    const char *const *argv = options->command;
    struct msc_runtime *r = msc_alloc_zero(1, sizeof *r);
    enum msc_status status = MSC_OK;
    MSC_TRY(MSC_ALLOCATED(r));
    r->timeout_s = options->timeout_s;
    if (!argv) {
        const char **found = NULL;
        MSC_TRY_OUT(find_command(&found, &r->arena));
        argv = found;
    }
    status = msc_process_start(&r->process, argv, NULL);
    if (status != MSC_OK) {
        status = msc_status_prefix(status, PROGRAM);
        status = status == MSC_E_NOT_FOUND
                     ? MSC_FAIL(status, "%s; install it next to mscgym, or name it in " VARIABLE,
                                msc_status_message())
                     : status;
        goto out;
    }
    msc_process_set_cancel(r->process, options->cancel, 1);
    MSC_TRY_OUT(ask_host(r, options->has_own));
    *out = r;
    r = NULL;
out:
    msc_runtime_stop(r);
    return status;
}

void msc_runtime_stop(struct msc_runtime *r) {
    static const char farewell[] = "{\"method\":\"done\"}\n";
    if (!r) {
        return;
    }
    if (r->process) {
        // The status is ignored: the program may already have ended.
        (void)msc_process_send(r->process, farewell, sizeof farewell - 1, STOP_GRACE_S);
        msc_process_stop(r->process, STOP_GRACE_S);
    }
    msc_str_finish(&r->request);
    msc_arena_finish(&r->arena);
    msc_free(r);
}

const struct msc_runtime_host *msc_runtime_host(const struct msc_runtime *runtime) {
    return &runtime->host;
}

bool msc_runtime_is_alive(const struct msc_runtime *runtime) {
    return runtime->process != NULL;
}

enum msc_status msc_runtime_find(const struct msc_runtime_found **out,
                                 const struct msc_runtime *runtime, const char *name) {
    const struct msc_runtime_host *host = &runtime->host;
    for (size_t i = 0; i < host->n_found; i++) {
        const struct msc_runtime_found *found = &host->found[i];
        if (strcmp(found->name, name) == 0) {
            *out = found;
            return found->version ? MSC_OK
                                  : MSC_FAIL(MSC_E_DEVICE, "runtime %s: %s", name, found->missing);
        }
    }
    struct msc_str names = {0};
    for (size_t i = 0; i < host->n_found; i++) {
        msc_str_item(&names, host->found[i].name);
    }
    enum msc_status status = MSC_FAIL(MSC_E_INVALID, "unknown runtime \"%s\": expected one of %s",
                                      name, msc_str_text(&names));
    msc_str_finish(&names);
    return status;
}

// ---- Jobs -------------------------------------------------------------------------------------

enum msc_status msc_runtime__add_numbers(cJSON *request, const char *key,
                                         const struct msc_binding numbers[], size_t n) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_add(request, key, object));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_add_number(object, numbers[i].symbol, (double)numbers[i].value));
    }
    return MSC_OK;
}

// Makes a request with the members common to all jobs; *out is owned by the caller.
static enum msc_status job_request(cJSON **out, const struct msc_runtime_job *job) {
    cJSON *request = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_json_add_text(request, "runtime", job->runtime));
    MSC_TRY_OUT(msc_json_add_number(request, "threads", job->n_threads));
    MSC_TRY_OUT(msc_json_add_number(request, "batch", (double)job->batch));
    if (job->inputs) {
        MSC_TRY_OUT(msc_json_add_text(request, "inputs", job->inputs));
        MSC_TRY_OUT(job->n_axes > 0
                        ? msc_runtime__add_numbers(request, "axes", job->axes, job->n_axes)
                        : MSC_OK);
    } else {
        MSC_TRY_OUT(msc_runtime__add_numbers(request, "lengths", job->bindings, job->n_bindings));
    }
    *out = request;
    request = NULL;
out:
    cJSON_Delete(request);
    return status;
}

enum msc_status msc_runtime__read_rounds(struct msc_latency *l, size_t model, const cJSON *item) {
    char where[64];
    const cJSON *us = NULL;
    snprintf(where, sizeof where, "answer: model %zu", model);
    MSC_TRY(msc_json_get_i64(&l->runs[model], item, "runs", where));
    MSC_TRY(msc_json_get_array(&us, item, "us", where));
    if ((size_t)cJSON_GetArraySize(us) != l->n_rounds || l->runs[model] < 1) {
        return MSC_FAIL(MSC_E_FORMAT, "%s has %d rounds of %lld runs, expected %zu", where,
                        cJSON_GetArraySize(us), (long long)l->runs[model], l->n_rounds);
    }
    size_t i = 0;
    const cJSON *value;
    cJSON_ArrayForEach(value, us) {
        if (!cJSON_IsNumber(value) || !(value->valuedouble > 0.0) ||
            !isfinite(value->valuedouble)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: round %zu is not a duration", where, i);
        }
        l->us[model * l->n_rounds + i++] = value->valuedouble;
    }
    return MSC_OK;
}

// The member `models` of an answer, with one entry for each of the job's models.
static enum msc_status get_models(const cJSON **out, const cJSON *answer, size_t n_models) {
    MSC_TRY(msc_json_get_array(out, answer, "models", "answer"));
    return (size_t)cJSON_GetArraySize(*out) == n_models
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, "answer: %d models, expected %zu", cJSON_GetArraySize(*out),
                          n_models);
}

static enum msc_status read_latency(struct msc_latency *l, const cJSON *answer) {
    const cJSON *models = NULL;
    MSC_TRY(get_models(&models, answer, l->n_models));
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, models) {
        MSC_TRY(msc_runtime__read_rounds(l, i++, item));
    }
    return MSC_OK;
}

static enum msc_status add_models(cJSON *request, const struct msc_runtime_job *job) {
    cJSON *models = cJSON_CreateArray();
    MSC_TRY(msc_json_add(request, "models", models));
    for (size_t i = 0; i < job->n_models; i++) {
        MSC_TRY(msc_json_push(models, cJSON_CreateString(job->models[i])));
    }
    return msc_json_add_number(request, "rounds", (double)job->n_rounds);
}

// Sends a request about all the job's models; *answer is owned by the caller.
static enum msc_status ask_models(cJSON **answer, struct msc_runtime *r,
                                  const struct msc_runtime_job *job, const char *method) {
    const struct msc_runtime_found *found;
    cJSON *request = NULL;
    assert(job->n_models > 0 && job->n_rounds > 0);
    MSC_TRY(msc_runtime_find(&found, r, job->runtime));
    MSC_TRY(job_request(&request, job));
    enum msc_status status = add_models(request, job);
    if (status != MSC_OK) {
        cJSON_Delete(request);
        return status;
    }
    return msc_runtime__exchange(r, request, method, answer);
}

enum msc_status msc_runtime_latency(struct msc_runtime *r, const struct msc_runtime_job *job,
                                    struct msc_latency *latency) {
    cJSON *answer = NULL;
    MSC_TRY(ask_models(&answer, r, job, "latency"));
    enum msc_status status = msc_latency_init(latency, job->n_models, (size_t)job->n_rounds);
    if (status == MSC_OK) {
        status = read_latency(latency, answer);
    }
    cJSON_Delete(answer);
    if (status != MSC_OK) {
        msc_latency_finish(latency);
        return msc_runtime__fail(r, status, "latency");
    }
    return MSC_OK;
}

// ---- Profiles ---------------------------------------------------------------------------------

static enum msc_status read_time(double *out, const cJSON *object, const char *where) {
    const cJSON *us = msc_json_get(object, "us");
    bool is_time = cJSON_IsNumber(us) && us->valuedouble >= 0.0 && isfinite(us->valuedouble);
    *out = is_time ? us->valuedouble : 0.0;
    return is_time ? MSC_OK : MSC_FAIL(MSC_E_FORMAT, "%s: us is not a duration", where);
}

static enum msc_status read_kernel(struct msc_profile_kernel *out, const cJSON *item,
                                   const char *where, struct msc_arena *arena) {
    static const char *const kinds[] = {[MSC_PROFILE_COMPUTE] = "compute",
                                        [MSC_PROFILE_QUANTIZE] = "quantize",
                                        [MSC_PROFILE_DEQUANTIZE] = "dequantize"};
    const cJSON *names = NULL, *name;
    const char *kind = NULL;
    size_t k = 0;
    MSC_TRY(read_time(&out->us, item, where));
    MSC_TRY(msc_json_get_text(&kind, item, "kind", where));
    MSC_TRY(msc_json_get_array(&names, item, "names", where));
    while (k < sizeof kinds / sizeof kinds[0] && strcmp(kind, kinds[k]) != 0) {
        k++;
    }
    if (k == sizeof kinds / sizeof kinds[0]) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: unknown kind \"%s\"", where, kind);
    }
    out->kind = (enum msc_profile_kind)k;
    const char **copies =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(names) + 1, sizeof copies[0]);
    MSC_TRY(MSC_ALLOCATED(copies));
    cJSON_ArrayForEach(name, names) {
        if (!cJSON_IsString(name)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: name %zu is not a string", where, out->n_names);
        }
        copies[out->n_names] = msc_arena_strdup(arena, name->valuestring);
        MSC_TRY(MSC_ALLOCATED(copies[out->n_names++]));
    }
    out->names = copies;
    return MSC_OK;
}

static enum msc_status read_profile(struct msc_profile *out, const cJSON *item, size_t model,
                                    struct msc_arena *arena) {
    char where[64];
    const cJSON *kernels = NULL, *kernel;
    snprintf(where, sizeof where, "answer: model %zu", model);
    *out = (struct msc_profile){0};
    MSC_TRY(read_time(&out->us, item, where));
    MSC_TRY(msc_json_get_array(&kernels, item, "kernels", where));
    out->kernels =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(kernels) + 1, sizeof out->kernels[0]);
    MSC_TRY(MSC_ALLOCATED(out->kernels));
    cJSON_ArrayForEach(kernel, kernels) {
        snprintf(where, sizeof where, "answer: model %zu, kernel %zu", model, out->n_kernels);
        MSC_TRY(read_kernel(&out->kernels[out->n_kernels], kernel, where, arena));
        out->n_kernels++;
    }
    return MSC_OK;
}

static enum msc_status read_profiles(struct msc_profile profiles[], const cJSON *answer,
                                     size_t n_models, struct msc_arena *arena) {
    const cJSON *models = NULL, *item;
    size_t i = 0;
    MSC_TRY(get_models(&models, answer, n_models));
    cJSON_ArrayForEach(item, models) {
        MSC_TRY(read_profile(&profiles[i], item, i, arena));
        i++;
    }
    return MSC_OK;
}

enum msc_status msc_runtime_profile(struct msc_runtime *r, const struct msc_runtime_job *job,
                                    struct msc_profile profiles[], struct msc_arena *arena) {
    cJSON *answer = NULL;
    MSC_TRY(ask_models(&answer, r, job, "profile"));
    enum msc_status status = read_profiles(profiles, answer, job->n_models, arena);
    cJSON_Delete(answer);
    return status == MSC_OK ? MSC_OK : msc_runtime__fail(r, status, "profile");
}

// ---- Outputs ----------------------------------------------------------------------------------

enum msc_status msc_runtime_outputs(struct msc_runtime *r, const struct msc_runtime_job *job,
                                    const char *path) {
    const struct msc_runtime_found *found;
    cJSON *request = NULL;
    cJSON *answer = NULL;
    assert(job->n_models == 1 && job->inputs);
    MSC_TRY(msc_runtime_find(&found, r, job->runtime));
    MSC_TRY(job_request(&request, job));
    enum msc_status status = msc_json_add_text(request, "model", job->models[0]);
    if (status == MSC_OK) {
        status = msc_json_add_text(request, "outputs", path);
    }
    if (status != MSC_OK) {
        cJSON_Delete(request);
        return status;
    }
    // Removes a leftover file, which would hold the outputs of another model.
    if (remove(path) != 0 && errno != ENOENT) {
        cJSON_Delete(request);
        return MSC_FAIL(MSC_E_IO, "cannot remove %s: %s", path, strerror(errno));
    }
    status = msc_runtime__exchange(r, request, "outputs", &answer);
    cJSON_Delete(answer);
    MSC_TRY(status);
    return msc_file_exists(path)
               ? MSC_OK
               : MSC_FAIL(MSC_E_FORMAT, PROGRAM ", outputs: it reports success, but wrote no file");
}
