#include "fake_bridge.h"

#include "../msc_test.h"
#include "base/alloc.h"
#include "base/rng.h"
#include "tests/search/batch_env.h"
#include "env/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORKERS 64
#define BEAT_S 2.0
#define PAUSE_S 1.0
#define START_S 1000.0
#define LONGEST_S 1e6 // a search that takes longer counts as endless

struct worker {
    struct fake_bridge *fake;
    int32_t number;
    bool is_alive, is_silent;
    enum fake_flaw flaw;
    struct msc_node *node;
    struct msc_env *env;
    struct cJSON *config;
    double busy_until_s;
};

enum happening {
    HAPPENS_UP,
    HAPPENS_DOWN,
    HAPPENS_REQUEST, // a line reaches the worker
    HAPPENS_LINE,    // a line of the worker reaches the coordinator
    HAPPENS_BEAT,
};

struct event {
    enum happening what;
    double at_s;
    int32_t worker;
    char *text;
};

struct fake_bridge {
    struct msc_bridge bridge;
    struct fake_bridge_options options;
    struct msc_rng rng;
    double now_s;
    struct worker workers[MAX_WORKERS];
    int n_workers; // including those that have ended
    struct event *events;
    size_t n_events, capacity;
    int n_faults_left;
    char *said; // text of the last event that was returned
    struct fake_figures figures, *total;
};

// ---- Chance -----------------------------------------------------------------------------------

static double draw(struct fake_bridge *f) {
    return msc_rng_double(&f->rng);
}

// Decides whether a fault is injected now, and counts it. At most options.n_faults are injected in
// total.
static bool goes_wrong(struct fake_bridge *f, double probability, int *count) {
    if (draw(f) >= probability || f->n_faults_left == 0) {
        return false;
    }
    f->n_faults_left--;
    ++*count;
    return true;
}

static double delay_s(struct fake_bridge *f) {
    double d = draw(f);
    return d < 0.9 ? 0.01 * d : 5.0 * (d - 0.9);
}

// ---- Events -----------------------------------------------------------------------------------

static void add_event(struct fake_bridge *f, enum happening what, double in_s, int32_t worker,
                      const char *text, size_t length) {
    assert_ok(msc_grow(&f->events, &f->capacity, f->n_events + 1, sizeof *f->events));
    char *copy = text ? strndup(text, length) : NULL;
    f->events[f->n_events++] =
        (struct event){.what = what, .at_s = f->now_s + in_s, .worker = worker, .text = copy};
}

static void add_worker(struct fake_bridge *f, double in_s) {
    assert_true(f->n_workers < MAX_WORKERS);
    struct worker *w = &f->workers[f->n_workers];
    bool is_flawed = f->options.are_all_flawed || f->n_workers == 0;
    *w = (struct worker){.fake = f,
                         .number = f->n_workers++,
                         .is_alive = true,
                         .flaw = is_flawed ? f->options.flaw : FLAW_NONE};
    add_event(f, HAPPENS_UP, in_s, w->number, NULL, 0);
    add_event(f, HAPPENS_BEAT, in_s + BEAT_S, w->number, NULL, 0);
}

static void end_worker(struct worker *w) {
    msc_node_destroy(w->node);
    msc_env_destroy(w->env);
    cJSON_Delete(w->config);
    w->node = NULL;
    w->env = NULL;
    w->config = NULL;
    w->is_alive = false;
}

// ---- Workers ----------------------------------------------------------------------------------

static enum msc_status open_subject(void *payload, struct msc_node_subject *out,
                                    const cJSON *request) {
    struct worker *w = payload;
    const struct msc_env_host host = {.abi = MSC_ENV_ABI, .n_threads = 1};
    (void)request;
    msc_env_destroy(w->env);
    cJSON_Delete(w->config);
    w->env = NULL;
    w->config = cJSON_Parse(w->fake->options.env);
    MSC_TRY(msc_env_create(&w->env, w->fake->options.def, w->config, &host));
    if (w->flaw == FLAW_LIES && w->fake->options.lie_share > 0) {
        batch_env_lie(w->env, w->fake->options.lie_share, w->fake->options.seed);
    } else if (w->flaw == FLAW_CANARY || w->flaw == FLAW_LIES) {
        batch_env_break(w->env, w->flaw == FLAW_CANARY);
    }
    *out = (struct msc_node_subject){.env = w->env,
                                     .program = "test",
                                     .build = "test",
                                     .numerics = w->flaw == FLAW_NUMERICS ? "other" : "test"};
    return MSC_OK;
}

static void say_garbage(struct worker *w) {
    static const char *const texts[] = {"Ray started a node", "{\"id\":", "[]", "{\"id\":1e300}",
                                        "{\"id\":0,\"outcomes\":[{}]}"};
    struct fake_bridge *f = w->fake;
    const char *text = texts[(size_t)(draw(f) * 5)];
    add_event(f, HAPPENS_LINE, delay_s(f), w->number, text, strlen(text));
}

static bool say(void *payload, const char *line, size_t length) {
    struct worker *w = payload;
    struct fake_bridge *f = w->fake;
    w->busy_until_s += 0.05 * draw(f);
    if (f->options.slow_s > 0.0 && draw(f) < 0.1) {
        w->busy_until_s += f->options.slow_s;
        f->figures.n_slow++;
    }
    double in_s = w->busy_until_s - f->now_s;
    if (goes_wrong(f, 0.01, &f->figures.n_drops)) {
        return true;
    }
    add_event(f, HAPPENS_LINE, in_s + delay_s(f), w->number, line, length - 1);
    if (goes_wrong(f, 0.02, &f->figures.n_twice)) {
        add_event(f, HAPPENS_LINE, in_s + delay_s(f), w->number, line, length - 1);
    }
    if (goes_wrong(f, 0.005, &f->figures.n_garbage)) {
        say_garbage(w);
    }
    return true;
}

static void open_node(struct worker *w) {
    const struct msc_node_options options = {.open = open_subject, .say = say, .payload = w};
    msc_node_destroy(w->node);
    assert_ok(msc_node_create(&w->node, &options));
}

// Returns true if the request has a single trial. If such a trial ends its worker, the coordinator
// blames the trial and records it as failed. So no fault may be injected into such a request.
static bool is_alone(const char *request) {
    const char *first = strstr(request, "\"choices\"");
    return first && !strstr(first + 1, "\"choices\"");
}

// Reports a crash of the process that evaluates. Every fourth time the cause is a lost device
// instead, for which no part is blamed.
static void crash(struct worker *w, const char *request) {
    char line[100];
    const char *part = strstr(request, "\"id\":");
    bool is_lost = w->fake->figures.n_crashes % 4 == 0;
    snprintf(line, sizeof line, "{\"crashed\":%ld,\"how\":\"%s\",\"signal\":%d}",
             part && !is_lost ? strtol(part + 5, NULL, 10) : -1, is_lost ? "lost" : "crash",
             is_lost ? 0 : 11);
    open_node(w);
    add_event(w->fake, HAPPENS_LINE, delay_s(w->fake), w->number, line, strlen(line));
}

static void take_request(struct worker *w, const char *request) {
    struct fake_bridge *f = w->fake;
    bool is_safe = is_alone(request);
    if (!w->node) {
        open_node(w);
    }
    if (w->is_silent || w->flaw == FLAW_DEAF) {
        return;
    }
    if (!is_safe && goes_wrong(f, 0.02, &f->figures.n_kills)) {
        add_event(f, HAPPENS_DOWN, delay_s(f), w->number, "killed", 6);
        end_worker(w);
    } else if (!is_safe && goes_wrong(f, 0.01, &f->figures.n_silences)) {
        w->is_silent = true;
    } else if (!is_safe && strstr(request, "evaluate") &&
               goes_wrong(f, 0.02, &f->figures.n_crashes)) {
        crash(w, request);
    } else {
        w->busy_until_s = w->busy_until_s > f->now_s ? w->busy_until_s : f->now_s;
        assert_ok(msc_node_take(w->node, request, strlen(request)));
    }
}

// ---- The bridge -------------------------------------------------------------------------------

static enum msc_status fake_send(struct msc_bridge *bridge, int32_t worker, const char *line,
                                 size_t length) {
    struct fake_bridge *f = (struct fake_bridge *)bridge;
    char *text = strndup(line, length - 1);
    bool is_safe = is_alone(text);
    free(text);
    assert_true(line[length - 1] == '\n');
    if (!is_safe && goes_wrong(f, 0.01, &f->figures.n_drops)) {
        return MSC_OK;
    }
    add_event(f, HAPPENS_REQUEST, delay_s(f), worker, line, length - 1);
    return MSC_OK;
}

static void fake_drop(struct msc_bridge *bridge, int32_t worker, bool for_good) {
    struct fake_bridge *f = (struct fake_bridge *)bridge;
    assert_true(f->workers[worker].is_alive);
    end_worker(&f->workers[worker]);
    if (!for_good) {
        add_worker(f, PAUSE_S);
    }
}

static int n_alive(const struct fake_bridge *f) {
    int n = 0;
    for (int i = 0; i < f->n_workers; i++) {
        n += f->workers[i].is_alive;
    }
    return n;
}

static bool take_next(struct fake_bridge *f, struct event *out, double until_s) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < f->n_events; i++) {
        if (f->events[i].at_s <= until_s &&
            (best == SIZE_MAX || f->events[i].at_s < f->events[best].at_s)) {
            best = i;
        }
    }
    if (best == SIZE_MAX) {
        return false;
    }
    *out = f->events[best];
    memmove(&f->events[best], &f->events[best + 1], (f->n_events - best - 1) * sizeof f->events[0]);
    f->n_events--;
    f->now_s = out->at_s > f->now_s ? out->at_s : f->now_s;
    return true;
}

static void tell(struct fake_bridge *f, struct msc_bridge_event *event,
                 enum msc_bridge_event_kind kind, const struct event *e, const char *text) {
    free(f->said);
    f->said = strdup(text);
    *event = (struct msc_bridge_event){
        .kind = kind, .worker = e->worker, .text = f->said, .length = strlen(f->said)};
}

// Returns true if the coordinator receives the event.
static bool happen(struct fake_bridge *f, struct msc_bridge_event *event, const struct event *e) {
    static const char *const beats[] = {"{\"beat\":1,\"busy\":false}",
                                        "{\"beat\":1,\"busy\":true}"};
    struct worker *w = &f->workers[e->worker];
    if (e->what == HAPPENS_DOWN) {
        tell(f, event, MSC_BRIDGE_DOWN, e, e->text);
        add_worker(f, PAUSE_S);
        return true;
    }
    if (!w->is_alive) {
        return false;
    }
    switch (e->what) {
    case HAPPENS_UP:
        tell(f, event, MSC_BRIDGE_UP, e, "");
        return true;
    case HAPPENS_REQUEST:
        take_request(w, e->text);
        return false;
    case HAPPENS_LINE:
        tell(f, event, MSC_BRIDGE_LINE, e, e->text);
        return true;
    case HAPPENS_BEAT:
        if (!w->is_silent) {
            add_event(f, HAPPENS_BEAT, BEAT_S, e->worker, NULL, 0);
            tell(f, event, MSC_BRIDGE_LINE, e, beats[w->busy_until_s > f->now_s]);
        }
        return !w->is_silent;
    case HAPPENS_DOWN:
        break;
    }
    return false;
}

static bool is_stopped(const struct fake_bridge *f) {
    return f->now_s > START_S + f->options.stop_s;
}

// Lets time pass at random while the coordinator is busy with something else. In half of the cases
// the workers' lines wait to be read; in the other half the workers are stopped as well.
static void pass_time(struct fake_bridge *f) {
    if (f->options.gap_s > 0.0 && draw(f) < 0.02) {
        bool are_all_stopped = draw(f) < 0.5;
        for (size_t i = 0; i < f->n_events && are_all_stopped; i++) {
            f->events[i].at_s += f->options.gap_s;
        }
        f->now_s += f->options.gap_s;
        f->figures.n_gaps++;
    }
    if (f->options.cancel && is_stopped(f)) {
        msc_cancel_raise(f->options.cancel, 1);
    }
    // Fails a test that would otherwise never end.
    assert_true(f->now_s < START_S + LONGEST_S);
}

static enum msc_status fake_next(struct msc_bridge *bridge, struct msc_bridge_event *event,
                                 double timeout_s) {
    struct fake_bridge *f = (struct fake_bridge *)bridge;
    pass_time(f);
    double until_s = f->now_s + timeout_s;
    struct event e;
    *event = (struct msc_bridge_event){.kind = MSC_BRIDGE_NOTHING};
    if (f->options.error && is_stopped(f)) {
        return MSC_FAIL(MSC_E_STATE, "%s", f->options.error);
    }
    if (n_alive(f) == 0 && f->n_events == 0) {
        return MSC_FAIL(MSC_E_STATE, "no worker is left");
    }
    if (f->n_workers < 12 && goes_wrong(f, 0.01, &f->figures.n_joins)) {
        add_worker(f, delay_s(f));
    }
    while (take_next(f, &e, until_s)) {
        bool is_told = happen(f, event, &e);
        free(e.text);
        if (is_told) {
            return MSC_OK;
        }
    }
    f->now_s = until_s;
    return MSC_OK;
}

static void fake_close(struct msc_bridge *bridge) {
    struct fake_bridge *f = (struct fake_bridge *)bridge;
    const struct fake_figures *own = &f->figures;
    if (f->total) {
        f->total->n_kills += own->n_kills;
        f->total->n_crashes += own->n_crashes;
        f->total->n_silences += own->n_silences;
        f->total->n_drops += own->n_drops;
        f->total->n_twice += own->n_twice;
        f->total->n_garbage += own->n_garbage;
        f->total->n_joins += own->n_joins;
        f->total->n_gaps += own->n_gaps;
        f->total->n_slow += own->n_slow;
    }
    for (int i = 0; i < f->n_workers; i++) {
        end_worker(&f->workers[i]);
    }
    for (size_t i = 0; i < f->n_events; i++) {
        free(f->events[i].text);
    }
    msc_free(f->events);
    free(f->said);
    free(f);
}

static const struct msc_bridge_def fake_def = {
    .send = fake_send, .drop = fake_drop, .next = fake_next, .close = fake_close};

struct fake_bridge *fake_bridge_open(const struct fake_bridge_options *options) {
    struct fake_bridge *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->bridge.def = &fake_def;
    f->options = *options;
    f->n_faults_left = options->n_faults;
    f->now_s = START_S;
    msc_rng_seed(&f->rng, options->seed, 7);
    for (int i = 0; i < options->n_workers; i++) {
        add_worker(f, delay_s(f));
    }
    return f;
}

struct msc_bridge *fake_bridge_bridge(struct fake_bridge *fake) {
    return &fake->bridge;
}

double fake_bridge_now_s(void *fake) {
    return ((struct fake_bridge *)fake)->now_s;
}

void fake_bridge_count(struct fake_bridge *fake, struct fake_figures *figures) {
    fake->total = figures;
}
