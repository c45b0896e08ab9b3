#include "cluster/node_message.h"

#include "base/float_bits.h"
#include "base/str.h"
#include "env/api/message.h"

#include <math.h>
#include <string.h>

// ---- Doubles ----------------------------------------------------------------------------------

void msc_node_write_doubles(struct msc_str *out, const double values[], size_t n) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        char text[16];
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (int d = 0; d < 16; d++) {
            text[d] = digits[bits >> (60 - 4 * d) & 15];
        }
        msc_str_append_n(out, text, sizeof text);
    }
}

static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool msc_node_read_doubles(double values[], size_t n, const char *text) {
    if (strlen(text) != 16 * n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (int d = 0; d < 16; d++) {
            int digit = digit_of(text[16 * i + (size_t)d]);
            if (digit < 0) {
                return false;
            }
            bits = bits << 4 | (uint64_t)digit;
        }
        memcpy(&values[i], &bits, sizeof bits);
    }
    return true;
}

// ---- Trials -----------------------------------------------------------------------------------

void msc_node_write_evaluate(struct msc_str *out, const struct msc_space *space,
                             const uint64_t ids[], const struct msc_node_range parts[],
                             size_t n_parts, struct msc_trial *const trials[],
                             const double bounds[], size_t n) {
    msc_str_append(out, "{\"method\":\"evaluate\",\"parts\":[");
    for (size_t i = 0; i < n_parts; i++) {
        msc_str_printf(out, "%s{\"id\":%llu,\"first\":%zu,\"n\":%zu}", i > 0 ? "," : "",
                       (unsigned long long)ids[i], parts[i].first, parts[i].n);
    }
    msc_str_append(out, "],\"trials\":[");
    for (size_t i = 0; i < n; i++) {
        msc_str_printf(out, "%s{\"id\":%lld,\"choices\":", i > 0 ? "," : "",
                       (long long)trials[i]->id);
        msc_message_write_choices(out, trials[i]->proposal.choices, space->n_tasks);
        if (isfinite(bounds[i])) {
            msc_str_append(out, ",\"bound\":\"");
            msc_node_write_doubles(out, &bounds[i], 1);
            msc_str_char(out, '"');
        }
        msc_str_char(out, '}');
    }
    msc_str_append(out, "]}\n");
}

static const char *const cause_names[] = {
    [MSC_CAUSE_NONE] = "none",
    [MSC_CAUSE_TRIAL] = "trial",
    [MSC_CAUSE_ENVIRONMENT] = "environment",
};

void msc_node_write_outcome(struct msc_str *out, int64_t id, const struct msc_node_outcome *o) {
    msc_str_printf(out, "{\"id\":%lld,\"n\":%zu,\"values\":\"%s\",\"reuse\":", (long long)id,
                   o->n_batches, o->values);
    msc_json_write_number(out, o->reuse_ratio);
    msc_str_printf(out, ",\"time_us\":%llu", (unsigned long long)o->time_us);
    if (o->state != MSC_TRIAL_COMPLETE) {
        msc_str_printf(out, ",\"state\":\"%s\",\"cause\":\"%s\",\"reason\":",
                       msc_trial_state_name(o->state), cause_names[o->cause]);
        msc_json_write_text(out, o->reason);
    }
    msc_str_char(out, '}');
}

static enum msc_status read_end(struct msc_node_outcome *out, const cJSON *object) {
    static const char where[] = "outcome";
    const char *state, *cause;
    MSC_TRY(msc_json_get_text(&state, object, "state", where));
    MSC_TRY(msc_json_get_text(&cause, object, "cause", where));
    MSC_TRY(msc_json_get_text(&out->reason, object, "reason", where));
    for (int i = 0; i <= MSC_CAUSE_ENVIRONMENT; i++) {
        if (strcmp(cause_names[i], cause) == 0 && msc_trial_state_parse(&out->state, state)) {
            out->cause = (enum msc_trial_cause)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_FORMAT, "outcome: unknown state \"%s\" or cause \"%s\"", state, cause);
}

enum msc_status msc_node_read_outcome(struct msc_node_outcome *out, int64_t *id,
                                      const cJSON *object) {
    static const char where[] = "outcome";
    int64_t n, time_us;
    *out = (struct msc_node_outcome){.state = MSC_TRIAL_COMPLETE, .reason = ""};
    MSC_TRY(msc_json_get_i64(id, object, "id", where));
    MSC_TRY(msc_json_get_i64(&n, object, "n", where));
    MSC_TRY(msc_json_get_text(&out->values, object, "values", where));
    MSC_TRY(msc_json_get_double(&out->reuse_ratio, object, "reuse", where));
    MSC_TRY(msc_json_get_i64(&time_us, object, "time_us", where));
    if (n < 0 || time_us < 0) {
        return MSC_FAIL(MSC_E_FORMAT, "outcome: batches and time must not be negative");
    }
    out->n_batches = (size_t)n;
    out->time_us = (uint64_t)time_us;
    return msc_json_get(object, "state") ? read_end(out, object) : MSC_OK;
}

// ---- The canary -------------------------------------------------------------------------------

// Writes the metrics that the program computes. Metrics measured outside the program are left out,
// because they differ each time.
static void write_computed(struct msc_str *out, const struct msc_space *space,
                           const double metrics[]) {
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (!space->metrics[i].is_measured) {
            msc_node_write_doubles(out, &metrics[i], 1);
        }
    }
}

static enum msc_status measure_canary(struct msc_str *out, struct msc_env *env,
                                      struct msc_arena *arena) {
    const struct msc_space *space = msc_env_space(env);
    const struct msc_env_batches batches = msc_env_batches(env);
    const double bound = INFINITY;
    struct msc_trial trial;
    struct msc_trial *trials = &trial;
    double *terms = msc_arena_array(arena, batches.n_terms + 1, sizeof *terms);
    MSC_TRY(msc_trial_init(&trial, arena, space));
    trial.id = INT64_MAX; // no trial of a search has this id
    MSC_TRY(MSC_ALLOCATED(terms));
    if (space->n_baselines > 0) {
        memcpy(trial.proposal.choices, space->baselines[0].choices,
               space->n_tasks * sizeof(uint32_t));
    }
    const struct msc_evaluation e = {.trials = &trials, .n = 1, .bounds = &bound};
    const struct msc_env_part first = {.end = 1, .terms = &terms, .kind = MSC_PART_ALONE};
    MSC_TRY(msc_env_measure(env, &e, batches.n_sums > 0 ? &first : NULL));
    msc_str_append(out, msc_trial_state_name(trial.outcome.state));
    if (batches.n_sums > 0) {
        msc_node_write_doubles(out, terms, batches.n_terms);
    } else {
        write_computed(out, space, trial.outcome.metrics);
    }
    return msc_str_status(out);
}

enum msc_status msc_node_canary(char *text, struct msc_env *env) {
    struct msc_str values = {0};
    struct msc_arena arena = {0};
    enum msc_status status = measure_canary(&values, env, &arena);
    if (status == MSC_OK) {
        msc_hash_format(text, msc_hash_bytes(values.data, values.length));
    }
    msc_arena_finish(&arena);
    msc_str_finish(&values);
    return status;
}
