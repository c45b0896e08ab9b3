#include "cluster/node.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "cluster/node_message.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS 500
#define READ_BYTES 65536
#define MAX_TRIALS 65536 // in one request

struct msc_node {
    struct msc_node_options options;
    struct msc_str held; // input that is not yet handled
    size_t begin;        // offset of the next line in `held`
    struct msc_node_subject subject;
    bool is_open;
    bool is_unheard;        // the coordinator no longer reads answers
    struct msc_arena arena; // memory of one request
    // Data of the current request:
    struct msc_trial **trials;
    double *bounds;
    double **terms;
    size_t n;
};

// ---- Lines ------------------------------------------------------------------------------------

static bool lock_output(int descriptor, short type, bool waits) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_len = 1};
    int result;
    do {
        result = fcntl(descriptor, waits ? F_SETLKW : F_SETLK, &lock);
    } while (result != 0 && errno == EINTR);
    // If the pipe does not support locks, it has only one writer and needs none.
    return result == 0 || (errno != EAGAIN && errno != EACCES);
}

bool msc_node_write_line(int descriptor, const char *line, size_t length, bool waits) {
    struct pollfd ready = {.fd = descriptor, .events = POLLOUT};
    if (!waits && (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT))) {
        return false;
    }
    if (!lock_output(descriptor, F_WRLCK, waits)) {
        return false;
    }
    bool is_good = true;
    while (length > 0 && is_good) {
        ssize_t n = write(descriptor, line, length);
        if (n > 0) {
            line += n;
            length -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            poll(&ready, 1, POLL_MS);
        } else {
            is_good = n < 0 && errno == EINTR;
        }
    }
    lock_output(descriptor, F_UNLCK, false);
    return is_good;
}

static enum msc_status answer(struct msc_node *node, struct msc_str *line) {
    msc_str_char(line, '\n');
    enum msc_status status = msc_str_status(line);
    if (status == MSC_OK && !node->options.say(node->options.payload, line->data, line->length)) {
        node->is_unheard = true;
        status = MSC_FAIL(MSC_E_IO, "the coordinator no longer reads answers");
    }
    msc_str_finish(line);
    return status;
}

// Sends the error of a request.
static enum msc_status answer_error(struct msc_node *node) {
    struct msc_str line = {0};
    msc_str_append(&line, "{\"error\":");
    msc_json_write_text(&line, msc_status_message());
    msc_str_char(&line, '}');
    return answer(node, &line);
}

// The next line, in place; NULL: the input has ended, or a stop was requested.
static enum msc_status next_line(struct msc_node *node, int input, char **line, size_t *length) {
    for (;;) {
        char *start = node->held.data ? node->held.data + node->begin : NULL;
        char *newline = start ? memchr(start, '\n', node->held.length - node->begin) : NULL;
        *line = NULL;
        if (newline) {
            *newline = '\0';
            *line = start;
            *length = (size_t)(newline - start);
            node->begin += *length + 1;
            return MSC_OK;
        }
        if (node->begin > 0) {
            memmove(node->held.data, start, node->held.length - node->begin);
            node->held.length -= node->begin;
            node->begin = 0;
        }
        struct pollfd ready = {.fd = input, .events = POLLIN};
        char bytes[READ_BYTES];
        if (msc_cancel_soon(node->options.cancel)) {
            return MSC_OK;
        }
        if (poll(&ready, 1, POLL_MS) <= 0) {
            continue;
        }
        ssize_t n = read(input, bytes, sizeof bytes);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
            return MSC_OK;
        }
        msc_str_append_n(&node->held, bytes, n > 0 ? (size_t)n : 0);
        MSC_TRY(msc_str_status(&node->held));
    }
}

// ---- Init -------------------------------------------------------------------------------------

static void write_pair(struct msc_str *out, const char *key, const char *value) {
    msc_str_printf(out, "%s\"%s\":", out->data[out->length - 1] == '{' ? "" : ",", key);
    msc_json_write_text(out, value);
}

static enum msc_status say_hello(struct msc_node *node) {
    const struct msc_node_subject *s = &node->subject;
    char canary[MSC_HASH_TEXT_BYTES], env[MSC_HASH_TEXT_BYTES], host[256] = "";
    struct msc_hash identity;
    struct msc_str line = {0};
    MSC_TRY(msc_node_canary(canary, s->env));
    MSC_TRY(msc_env_identity(&identity, s->env));
    const char *job = getenv("SLURM_JOB_ID"), *node_name = getenv("SLURMD_NODENAME");
    if (gethostname(host, sizeof host - 1) != 0) {
        host[0] = '\0';
    }
    msc_str_append(&line, "{\"hello\":{");
    write_pair(&line, "program", s->program);
    write_pair(&line, "build", s->build);
    write_pair(&line, "numerics", s->numerics);
    write_pair(&line, "env", msc_hash_format(env, identity));
    write_pair(&line, "canary", canary);
    write_pair(&line, "host", node_name ? node_name : host);
    if (job) {
        write_pair(&line, "job", job);
    }
    msc_str_printf(&line, ",\"pid\":%ld}}", (long)getpid());
    return answer(node, &line);
}

static enum msc_status check_protocol(const cJSON *request) {
    int64_t protocol;
    MSC_TRY(msc_json_get_i64(&protocol, request, "protocol", "init"));
    return protocol == MSC_NODE_PROTOCOL
               ? MSC_OK
               : MSC_FAIL(MSC_E_UNSUPPORTED,
                          "init requests protocol %lld, but this worker has %d; install the same "
                          "mscgym on all machines",
                          (long long)protocol, MSC_NODE_PROTOCOL);
}

static enum msc_status begin(struct msc_node *node, const cJSON *request) {
    node->is_open = false;
    MSC_TRY(check_protocol(request));
    MSC_TRY(node->options.open(node->options.payload, &node->subject, request));
    MSC_TRY(say_hello(node));
    node->is_open = true;
    return MSC_OK;
}

// ---- Evaluate ---------------------------------------------------------------------------------

static enum msc_status read_trial(struct msc_node *node, size_t i, const cJSON *object) {
    static const char where[] = "trial";
    const struct msc_space *space = msc_env_space(node->subject.env);
    const cJSON *choices, *choice = NULL, *bound = msc_json_get(object, "bound");
    struct msc_trial *trial = msc_arena_array(&node->arena, 1, sizeof *trial);
    node->terms[i] =
        msc_arena_array(&node->arena, msc_env_n_terms(node->subject.env) + 1, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(trial && node->terms[i]));
    MSC_TRY(msc_trial_init(trial, &node->arena, space));
    MSC_TRY(msc_json_get_i64(&trial->id, object, "id", where));
    MSC_TRY(msc_json_get_array(&choices, object, "choices", where));
    size_t n = 0;
    cJSON_ArrayForEach(choice, choices) {
        int64_t value;
        if (n == space->n_tasks || !msc_json_read_i64(&value, choice, 0, UINT32_MAX)) {
            return MSC_FAIL(MSC_E_FORMAT,
                            "trial: choices must be %zu non-negative integers, one for each task",
                            space->n_tasks);
        }
        trial->proposal.choices[n++] = (uint32_t)value;
    }
    if (n != space->n_tasks) {
        return MSC_FAIL(MSC_E_FORMAT, "trial: %zu choices for %zu tasks", n, space->n_tasks);
    }
    node->bounds[i] = INFINITY;
    if (bound && (!cJSON_IsString(bound) ||
                  !msc_node_read_doubles(&node->bounds[i], 1, bound->valuestring))) {
        return MSC_FAIL(MSC_E_FORMAT, "trial: bound must be a string of 16 hexadecimal digits");
    }
    trial->proposal.bound = node->bounds[i];
    node->trials[i] = trial;
    return MSC_OK;
}

static enum msc_status read_trials(struct msc_node *node, const cJSON *request) {
    const cJSON *list, *item = NULL;
    MSC_TRY(msc_json_get_array(&list, request, "trials", "evaluate"));
    size_t n = (size_t)cJSON_GetArraySize(list);
    if (n == 0 || n > MAX_TRIALS) {
        return MSC_FAIL(MSC_E_FORMAT, "evaluate: %zu trials, expected 1 to %d", n, MAX_TRIALS);
    }
    node->trials = msc_arena_array(&node->arena, n, sizeof *node->trials);
    node->bounds = msc_arena_array(&node->arena, n, sizeof *node->bounds);
    node->terms = msc_arena_array(&node->arena, n, sizeof *node->terms);
    MSC_TRY(MSC_ALLOCATED(node->trials && node->bounds && node->terms));
    node->n = 0;
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(read_trial(node, node->n, item));
        node->n++;
    }
    return MSC_OK;
}

// Marks terms that were not computed: a NaN with a payload that no sum of batches has.
static double unmeasured(void) {
    static const uint64_t bits = 0x7ff8006d73636779;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_unmeasured(double value) {
    const double none = unmeasured();
    return memcmp(&value, &none, sizeof value) == 0;
}

static void clear_terms(const struct msc_node *node, const struct msc_node_range *range) {
    const struct msc_env_batches b = msc_env_batches(node->subject.env);
    for (size_t i = 0; i < node->n; i++) {
        memset(node->terms[i], 0, b.n_terms * sizeof(double));
        for (size_t sum = 0; sum < b.n_sums; sum++) {
            for (size_t k = 0; k < range->n; k++) {
                node->terms[i][sum * b.n + range->first + k] = unmeasured();
            }
        }
    }
}

static void write_part(struct msc_str *values, size_t *n_batches, const struct msc_node *node,
                       size_t i, const struct msc_node_range *range) {
    const struct msc_env_batches b = msc_env_batches(node->subject.env);
    *n_batches = 0;
    for (size_t k = 0; k < range->n; k++) {
        if (is_unmeasured(node->terms[i][range->first + k])) {
            return;
        }
        for (size_t sum = 0; sum < b.n_sums; sum++) {
            msc_node_write_doubles(values, &node->terms[i][sum * b.n + range->first + k], 1);
        }
        *n_batches += 1;
    }
}

static enum msc_status write_outcomes(struct msc_str *out, const struct msc_node *node,
                                      const struct msc_node_range *range) {
    const struct msc_space *space = msc_env_space(node->subject.env);
    struct msc_str values = {0};
    for (size_t i = 0; i < node->n; i++) {
        const struct msc_outcome *o = &node->trials[i]->outcome;
        struct msc_node_outcome sent = {.state = o->state,
                                        .cause = o->cause,
                                        .reason = o->reason,
                                        .reuse_ratio = o->reuse_ratio,
                                        .time_us = o->time_us};
        msc_str_clear(&values);
        if (range->n > 0) {
            write_part(&values, &sent.n_batches, node, i, range);
            // If the trial reached the end of the part, the part is complete.
            sent.state = sent.n_batches == range->n ? MSC_TRIAL_COMPLETE : sent.state;
        } else {
            msc_node_write_doubles(&values, o->metrics, space->n_metrics);
        }
        sent.values = msc_str_text(&values);
        msc_str_append(out, i > 0 ? "," : "");
        msc_node_write_outcome(out, node->trials[i]->id, &sent);
    }
    enum msc_status status = msc_str_status(&values);
    msc_str_finish(&values);
    return status;
}

static void finish_one(void *payload, size_t index) {
    const struct msc_node *node = payload;
    msc_worker_add_trial(node->options.worker, node->trials[index]->outcome.time_us);
    msc_cancel_beat(node->options.cancel);
}

static enum msc_status measure_range(struct msc_node *node, int64_t id,
                                     const struct msc_node_range *range) {
    const struct msc_env_part part = {.first = range->first,
                                      .end = range->first + range->n,
                                      .terms = node->terms,
                                      .kind = MSC_PART_ALONE};
    const struct msc_evaluation e = {.trials = node->trials,
                                     .n = node->n,
                                     .finished = finish_one,
                                     .payload = node,
                                     .bounds = node->bounds};
    struct msc_worker *worker = node->options.worker;
    clear_terms(node, range);
    msc_worker_note_part(worker, id);
    msc_worker_begin(worker, node->subject.trial_seconds * (double)node->n);
    enum msc_status status = msc_env_measure(node->subject.env, &e, range->n > 0 ? &part : NULL);
    msc_worker_end(worker);
    msc_worker_note_part(worker, -1);
    msc_worker_add_progress(worker, status == MSC_OK ? node->n : 0);
    return status;
}

// Marks each trial as failed because the whole evaluation lacked memory or a device. A lost device
// is handled by msc_node_take.
static void fail_all(struct msc_node *node) {
    for (size_t i = 0; i < node->n; i++) {
        msc_outcome_fail(&node->trials[i]->outcome, MSC_CAUSE_ENVIRONMENT, "%s",
                         msc_status_message());
    }
}

static enum msc_status evaluate_part(struct msc_node *node, const cJSON *object) {
    static const char where[] = "part";
    int64_t id, first, n;
    MSC_TRY(msc_json_get_i64(&id, object, "id", where));
    MSC_TRY(msc_json_get_i64(&first, object, "first", where));
    MSC_TRY(msc_json_get_i64(&n, object, "n", where));
    const struct msc_env_batches b = msc_env_batches(node->subject.env);
    const struct msc_node_range range = {.first = (size_t)first, .n = (size_t)n};
    if (first < 0 || n < 0 || range.first > b.n || range.n > b.n - range.first ||
        (n > 0 && b.n_sums == 0)) {
        return MSC_FAIL(MSC_E_FORMAT,
                        "part: first is %lld and n is %lld, but there are only %zu batches",
                        (long long)first, (long long)n, b.n);
    }
    enum msc_status status = measure_range(node, id, &range);
    if (status == MSC_E_NOMEM || status == MSC_E_DEVICE) {
        fail_all(node);
        status = MSC_OK;
    }
    MSC_TRY(status);
    struct msc_str line = {0};
    msc_str_printf(&line, "{\"id\":%lld,\"outcomes\":[", (long long)id);
    status = write_outcomes(&line, node, &range);
    if (status != MSC_OK) {
        msc_str_finish(&line);
        return status;
    }
    msc_str_append(&line, "]}");
    return answer(node, &line);
}

static enum msc_status evaluate(struct msc_node *node, const cJSON *request) {
    const cJSON *parts, *part = NULL;
    MSC_TRY(msc_json_get_array(&parts, request, "parts", "evaluate"));
    MSC_TRY(read_trials(node, request));
    cJSON_ArrayForEach(part, parts) {
        MSC_TRY(evaluate_part(node, part));
    }
    return MSC_OK;
}

// ---- The loop ---------------------------------------------------------------------------------

enum msc_status msc_node_tell_crash(struct msc_node *node) {
    static const char *const names[] = {
        [MSC_WORKER_DEATH_NONE] = "none",     [MSC_WORKER_DEATH_CRASH] = "crash",
        [MSC_WORKER_DEATH_KILLED] = "killed", [MSC_WORKER_DEATH_LIMIT] = "limit",
        [MSC_WORKER_DEATH_QUIET] = "quiet",   [MSC_WORKER_DEATH_LOST] = "lost",
    };
    int64_t part;
    int signal_number;
    struct msc_str line = {0};
    enum msc_worker_death death = msc_worker_take_part(&part, &signal_number, node->options.worker);
    if (death == MSC_WORKER_DEATH_NONE) {
        return MSC_OK;
    }
    // The newline ends a line that the previous worker may have left incomplete.
    msc_str_printf(&line, "\n{\"crashed\":%lld,\"how\":\"%s\",\"signal\":%d}", (long long)part,
                   names[death], signal_number);
    return answer(node, &line);
}

static enum msc_status take_request(struct msc_node *node, const cJSON *request) {
    const cJSON *method = msc_json_get(request, "method");
    const char *name = cJSON_IsString(method) ? method->valuestring : "";
    if (strcmp(name, "init") == 0) {
        return begin(node, request);
    }
    // A request before init is for the previous worker, so it is ignored.
    if (!node->is_open) {
        return MSC_OK;
    }
    if (strcmp(name, "evaluate") == 0) {
        return evaluate(node, request);
    }
    return MSC_FAIL(MSC_E_FORMAT, "not a request: expected {\"method\":\"init\"} or \"evaluate\"");
}

enum msc_status msc_node_take(struct msc_node *node, const char *line, size_t length) {
    cJSON *request = NULL;
    enum msc_status status = msc_json_parse(&request, line, length, "request");
    if (status == MSC_OK) {
        status = take_request(node, request);
    } else if (!node->is_open) {
        status = MSC_OK; // the rest of a line that the previous worker read in part
    }
    cJSON_Delete(request);
    msc_arena_finish(&node->arena);
    node->arena = (struct msc_arena){0};
    bool is_over = node->is_unheard || status == MSC_OK || status == MSC_E_CANCELLED;
    if (!is_over && msc_worker_leave(node->options.worker, status)) {
        return msc_status_restore(MSC_E_LOST, msc_status_message());
    }
    return is_over ? status : answer_error(node); // the error is sent as the answer
}

enum msc_status msc_node_create(struct msc_node **out, const struct msc_node_options *options) {
    struct msc_node *node = msc_alloc_zero(1, sizeof *node);
    MSC_TRY(MSC_ALLOCATED(node));
    node->options = *options;
    *out = node;
    return MSC_OK;
}

void msc_node_destroy(struct msc_node *node) {
    if (node) {
        msc_arena_finish(&node->arena);
        msc_str_finish(&node->held);
        msc_free(node);
    }
}

enum msc_status msc_node_run(struct msc_node *node, int input) {
    char *line;
    size_t length = 0;
    enum msc_status status = msc_node_tell_crash(node);
    while (status == MSC_OK) {
        status = next_line(node, input, &line, &length);
        if (status != MSC_OK || !line) {
            break;
        }
        status = msc_node_take(node, line, length);
    }
    return status == MSC_E_CANCELLED ? MSC_OK : status;
}
