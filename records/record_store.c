// Trials in memory, packed: optional members take space only if present. Most lines have no
// bound, parent, repeat or violation, and a search may hold millions.
#include "records/record_internal.h"

#include <math.h>
#include <string.h>

// Optional members of a packed line, which follow the struct in this order.
enum {
    HAS_PARENT = 1 << 0,
    HAS_BOUND = 1 << 1,
    HAS_VIOLATION = 1 << 2,
    HAS_REPEAT = 1 << 3,
    HAS_RETRY = 1 << 4,
    HAS_REASON = 1 << 5,
    IS_PROBE = 1 << 6,
    IS_LEFT_OUT = 1 << 7,
    IS_ASSEMBLED = 1 << 8,
};

// Followed by double metrics[n_metrics], the members in `flags` (8 bytes each), double
// rungs[n_rungs], uint32_t choices[n_tasks], char reason[].
struct msc_record_packed {
    double elapsed_s;
    uint64_t time_us;
    uint16_t reuse; // thousandths, as in the file
    uint16_t flags;
    uint8_t state;
    uint8_t cause;
    uint8_t warm;
    uint8_t n_rungs;
};

union word {
    double real;
    int64_t whole;
};

uint64_t msc_record__thousandths(double value) {
    return value > 0.0 && value < 1e12 ? (uint64_t)(value * 1e3 + 0.5) : 0;
}

static unsigned flags_of(const struct msc_record_line *line) {
    const struct msc_proposal *proposal = &line->trial.proposal;
    const struct msc_outcome *outcome = &line->trial.outcome;
    return (proposal->parent >= 0 ? HAS_PARENT : 0) |
           (isinf(proposal->bound) && proposal->bound > 0 ? 0 : HAS_BOUND) |
           (outcome->violation != 0.0 ? HAS_VIOLATION : 0) |
           (line->repeat_of >= 0 ? HAS_REPEAT : 0) | (line->retry_of >= 0 ? HAS_RETRY : 0) |
           (outcome->reason[0] != '\0' ? HAS_REASON : 0) | (proposal->probe ? IS_PROBE : 0) |
           (line->is_left_out ? IS_LEFT_OUT : 0) | (line->is_assembled ? IS_ASSEMBLED : 0);
}

static unsigned count_words(unsigned flags) {
    unsigned n = 0;
    for (unsigned flag = HAS_PARENT; flag <= HAS_RETRY; flag <<= 1) {
        n += (flags & flag) != 0;
    }
    return n;
}

static double *put_words(double *at, unsigned flags, const struct msc_record_line *line) {
    const union word words[] = {
        {.whole = line->trial.proposal.parent},
        {.real = line->trial.proposal.bound},
        {.real = line->trial.outcome.violation},
        {.whole = line->repeat_of},
        {.whole = line->retry_of},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (flags & HAS_PARENT << i) {
            memcpy(at++, &words[i], sizeof words[i]);
        }
    }
    return at;
}

static const double *take_words(struct msc_record_line *line, const double *at, unsigned flags) {
    union word words[] = {
        {.whole = -1}, {.real = INFINITY}, {.real = 0.0}, {.whole = -1}, {.whole = -1},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (flags & HAS_PARENT << i) {
            memcpy(&words[i], at++, sizeof words[i]);
        }
    }
    line->trial.proposal.parent = words[0].whole;
    line->trial.proposal.bound = words[1].real;
    line->trial.outcome.violation = words[2].real;
    line->repeat_of = words[3].whole;
    line->retry_of = words[4].whole;
    return at;
}

struct msc_record_packed *msc_record__pack(struct msc_arena *arena, const struct msc_space *space,
                                           const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    unsigned flags = flags_of(line);
    size_t metrics_bytes = space->n_metrics * sizeof(double);
    size_t rungs_bytes = line->n_rungs * sizeof(double);
    size_t choices_bytes = space->n_tasks * sizeof(uint32_t);
    size_t reason_bytes = flags & HAS_REASON ? strlen(outcome->reason) + 1 : 0;
    struct msc_record_packed *packed = msc_arena_alloc(
        arena, sizeof *packed + metrics_bytes + count_words(flags) * sizeof(double) + rungs_bytes +
                   choices_bytes + reason_bytes);
    if (!packed) {
        return NULL;
    }
    *packed = (struct msc_record_packed){
        .elapsed_s = line->elapsed_s,
        .time_us = outcome->time_us,
        .reuse = (uint16_t)msc_record__thousandths(fmin(outcome->reuse_ratio, 65.0)),
        .flags = (uint16_t)flags,
        .state = (uint8_t)outcome->state,
        .cause = (uint8_t)outcome->cause,
        .warm = (uint8_t)line->warm,
        .n_rungs = (uint8_t)line->n_rungs,
    };
    double *at = (double *)(packed + 1);
    memcpy(at, outcome->metrics, metrics_bytes);
    at = put_words(at + space->n_metrics, flags, line);
    memcpy(at, line->rungs, rungs_bytes);
    char *rest = (char *)(at + line->n_rungs);
    memcpy(rest, line->trial.proposal.choices, choices_bytes);
    memcpy(rest + choices_bytes, outcome->reason, reason_bytes);
    return packed;
}

// The index is derived from ids; the label in the line is only for people.
int64_t msc_record__baseline_of(const struct msc_space *space, const struct msc_record_line *line) {
    int64_t first = line->retry_of >= 0 ? line->retry_of : line->trial.id;
    return first < (int64_t)space->n_baselines ? first : -1;
}

void msc_record__unpack(struct msc_record_line *out, struct msc_record_packed *packed, int64_t id,
                        const struct msc_space *space, const struct msc_goal *goal) {
    static char no_reason[1];
    struct msc_trial *trial = &out->trial;
    msc_record__begin_line(out);
    trial->id = id;
    trial->proposal.probe = (packed->flags & IS_PROBE) != 0;
    trial->outcome.state = (enum msc_trial_state)packed->state;
    trial->outcome.cause = (enum msc_trial_cause)packed->cause;
    trial->outcome.metrics = (double *)(packed + 1);
    trial->outcome.time_us = packed->time_us;
    trial->outcome.reuse_ratio = packed->reuse / 1e3;
    out->warm = (enum msc_record_warm)packed->warm;
    out->n_rungs = packed->n_rungs;
    out->elapsed_s = packed->elapsed_s;
    out->is_left_out = (packed->flags & IS_LEFT_OUT) != 0;
    out->is_assembled = (packed->flags & IS_ASSEMBLED) != 0;
    const double *at = take_words(out, trial->outcome.metrics + space->n_metrics, packed->flags);
    memcpy(out->rungs, at, out->n_rungs * sizeof *at);
    trial->proposal.choices = (uint32_t *)(at + out->n_rungs);
    trial->outcome.reason =
        packed->flags & HAS_REASON ? (char *)(trial->proposal.choices + space->n_tasks) : no_reason;
    out->baseline = msc_record__baseline_of(space, out);
    msc_goal_set_objectives(goal, &trial->outcome);
}

double *msc_record__elapsed(struct msc_record_packed *packed) {
    return &packed->elapsed_s;
}

void msc_record__mark_left_out(struct msc_record_packed *packed) {
    packed->flags |= IS_LEFT_OUT;
}
