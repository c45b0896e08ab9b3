// A bridge to workers that another program starts and reaches. It exchanges lines of JSON with that
// program (docs/cluster.md).
#include "cluster/bridge.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/process.h"
#include "base/str.h"

#include <poll.h>
#include <string.h>

#define GRACE_S 5.0 // for the program to end its workers

struct program {
    struct msc_bridge bridge;
    struct msc_process *process;
    const char *name; // the program's name in messages
    const char *hint; // added to the message if the program ends without output
    bool has_spoken;
    int32_t n_workers;  // workers started so far
    struct msc_str out; // lines that are not yet written
    size_t n_written;
    cJSON *message; // the message that the last event's texts are in
};

static enum msc_status flush(struct program *p) {
    while (p->n_written < p->out.length) {
        size_t n = 0;
        MSC_TRY(msc_process_send_some(p->process, p->out.data + p->n_written,
                                      p->out.length - p->n_written, &n));
        if (n == 0) {
            return MSC_OK;
        }
        p->n_written += n;
    }
    msc_str_clear(&p->out);
    p->n_written = 0;
    return MSC_OK;
}

static enum msc_status send_out(struct program *p) {
    MSC_TRY(msc_str_status(&p->out));
    flush(p); // the program may have ended; reading its output will show that
    return MSC_OK;
}

static enum msc_status program_send(struct msc_bridge *bridge, int32_t worker, const char *line,
                                    size_t length) {
    struct program *p = (struct program *)bridge;
    struct msc_str text = {0};
    msc_str_append_n(&text, line, length > 0 && line[length - 1] == '\n' ? length - 1 : length);
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        msc_str_printf(&p->out, "{\"send\":{\"w\":%d,\"line\":", (int)worker);
        msc_json_write_text(&p->out, msc_str_text(&text));
        msc_str_append(&p->out, "}}\n");
    }
    msc_str_finish(&text);
    return status == MSC_OK ? send_out(p) : status;
}

static void program_drop(struct msc_bridge *bridge, int32_t worker, bool for_good) {
    struct program *p = (struct program *)bridge;
    msc_str_printf(&p->out, "{\"drop\":{\"w\":%d,\"for_good\":%s}}\n", (int)worker,
                   for_good ? "true" : "false");
    send_out(p);
}

static enum msc_status program_file(struct msc_bridge *bridge, const char *path, bool is_head) {
    struct program *p = (struct program *)bridge;
    msc_str_append(&p->out, "{\"file\":{\"path\":");
    msc_json_write_text(&p->out, path);
    msc_str_printf(&p->out, ",\"first_line\":%s}}\n", is_head ? "true" : "false");
    return send_out(p);
}

static enum msc_status fail_message(const struct program *p, const char *line, size_t length) {
    int n = length < 80 ? (int)length : 80;
    return MSC_FAIL(MSC_E_FORMAT, "%s sent an unexpected message: %.*s", p->name, n, line);
}

static bool read_event(struct program *p, struct msc_bridge_event *event, const cJSON *object,
                       const char *key) {
    int64_t worker;
    const char *text;
    if (msc_json_get_i64(&worker, object, "w", key) != MSC_OK ||
        msc_json_get_text(&text, object,
                          strcmp(key, "up") == 0     ? "node"
                          : strcmp(key, "down") == 0 ? "why"
                                                     : "line",
                          key) != MSC_OK) {
        return false;
    }
    // Workers' numbers increase and are never reused.
    bool is_new = worker >= p->n_workers && worker < INT32_MAX;
    if (strcmp(key, "up") == 0 ? !is_new : worker < 0 || worker >= p->n_workers) {
        return false;
    }
    event->worker = (int32_t)worker;
    event->text = text;
    event->length = strlen(text);
    p->n_workers = is_new ? (int32_t)worker + 1 : p->n_workers;
    return true;
}

static enum msc_status take_message(struct program *p, struct msc_bridge_event *event,
                                    const char *line, size_t length) {
    static const struct {
        const char *key;
        enum msc_bridge_event_kind kind;
    } kinds[] = {{"up", MSC_BRIDGE_UP}, {"down", MSC_BRIDGE_DOWN}, {"line", MSC_BRIDGE_LINE}};
    cJSON_Delete(p->message);
    p->message = NULL;
    if (msc_json_parse(&p->message, line, length, p->name) != MSC_OK) {
        return fail_message(p, line, length);
    }
    p->has_spoken = true;
    const cJSON *error = msc_json_get(p->message, "error");
    if (cJSON_IsString(error)) {
        return MSC_FAIL(MSC_E_STATE, "%s: %s", p->name, error->valuestring);
    }
    const cJSON *note = msc_json_get(p->message, "note");
    if (cJSON_IsString(note)) {
        *event = (struct msc_bridge_event){.kind = MSC_BRIDGE_NOTE,
                                           .worker = -1,
                                           .text = note->valuestring,
                                           .length = strlen(note->valuestring)};
        return MSC_OK;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const cJSON *object = msc_json_get(p->message, kinds[i].key);
        if (cJSON_IsObject(object)) {
            event->kind = kinds[i].kind;
            return read_event(p, event, object, kinds[i].key) ? MSC_OK
                                                              : fail_message(p, line, length);
        }
    }
    return fail_message(p, line, length);
}

static enum msc_status fail_end(const struct program *p) {
    struct msc_str why = {0};
    msc_str_append(&why, msc_status_message());
    enum msc_status status =
        MSC_FAIL(MSC_E_STATE, "%s%s", msc_str_text(&why), p->has_spoken ? "" : p->hint);
    msc_str_finish(&why);
    return status;
}

static enum msc_status program_next(struct msc_bridge *bridge, struct msc_bridge_event *event,
                                    double timeout_s) {
    struct program *p = (struct program *)bridge;
    double end_s = msc_clock_seconds() + timeout_s;
    *event = (struct msc_bridge_event){.kind = MSC_BRIDGE_NOTHING};
    for (;;) {
        const char *line;
        size_t length;
        flush(p);
        if (msc_process_next_line(p->process, &line, &length) != MSC_OK) {
            return fail_end(p);
        }
        if (line) {
            return take_message(p, event, line, length);
        }
        double left_ms = (end_s - msc_clock_seconds()) * 1e3;
        if (left_ms <= 0) {
            return MSC_OK;
        }
        struct pollfd polled[] = {
            {.fd = msc_process_output(p->process), .events = POLLIN},
            {.fd = msc_process_input(p->process), .events = POLLOUT},
        };
        poll(polled, p->out.length > p->n_written ? 2 : 1, (int)left_ms + 1);
    }
}

static void program_close(struct msc_bridge *bridge) {
    struct program *p = (struct program *)bridge;
    msc_process_stop(p->process, GRACE_S);
    msc_str_finish(&p->out);
    cJSON_Delete(p->message);
    msc_free(p);
}

static const struct msc_bridge_def bridge_program = {
    .send = program_send,
    .drop = program_drop,
    .file = program_file,
    .next = program_next,
    .close = program_close,
};

enum msc_status msc_bridge_open_program(struct msc_bridge **out, const char *const argv[],
                                        const char *const requests[], const char *name,
                                        const char *hint) {
    struct program *p = msc_alloc_zero(1, sizeof *p);
    MSC_TRY(MSC_ALLOCATED(p));
    p->bridge.def = &bridge_program;
    p->name = name;
    p->hint = hint;
    enum msc_status status = msc_process_start(&p->process, argv, NULL);
    for (size_t i = 0; status == MSC_OK && requests[i]; i++) {
        msc_str_append(&p->out, requests[i]);
        msc_str_char(&p->out, '\n');
        status = msc_str_status(&p->out);
    }
    if (status != MSC_OK) {
        program_close(&p->bridge);
        return status;
    }
    *out = &p->bridge;
    return MSC_OK;
}
