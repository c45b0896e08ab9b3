// A record in memory: its header, trials and segments.
#include "records/record_internal.h"

#include "base/clock.h"
#include "base/json.h"
#include "records/record_header.h"

#include <assert.h>
#include <math.h>
#include <unistd.h>

enum msc_status msc_record__new(struct msc_record **out, const char *path,
                                const struct msc_log *log) {
    struct msc_record *record = msc_alloc_zero(1, sizeof *record);
    if (record) {
        record->descriptor = -1;
        record->log = log;
        record->path = msc_strdup(path);
    }
    if (!record || !record->path) {
        msc_free(record);
        return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", path);
    }
    *out = record;
    return MSC_OK;
}

static enum msc_status make_key(struct msc_record_key *out, struct msc_arena *arena,
                                const char *name, const char *after) {
    enum msc_status status = MSC_OK;
    struct msc_str text = {0};
    msc_json_write_text(&text, name);
    msc_str_append(&text, after);
    MSC_TRY_OUT(msc_str_status(&text));
    out->length = text.length;
    out->text = msc_arena_strndup(arena, msc_str_text(&text), text.length);
    if (!out->text) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
out:
    msc_str_finish(&text);
    return status;
}

static enum msc_status make_keys(struct msc_record *record) {
    const struct msc_space *space = record->space;
    struct msc_arena *arena = &record->arena;
    struct msc_record_key *keys = msc_arena_array(arena, space->n_metrics, sizeof *keys);
    struct msc_record_key *labels = msc_arena_array(arena, space->n_baselines, sizeof *labels);
    record->scratch = msc_arena_array(arena, space->n_tasks, sizeof *record->scratch);
    MSC_TRY(MSC_ALLOCATED(keys && labels && record->scratch));
    for (size_t i = 0; i < space->n_metrics; i++) {
        MSC_TRY(make_key(&keys[i], arena, space->metrics[i].name, ":"));
    }
    for (size_t i = 0; i < space->n_baselines; i++) {
        MSC_TRY(make_key(&labels[i], arena, space->baselines[i].label, ""));
    }
    record->keys = keys;
    record->labels = labels;
    return MSC_OK;
}

enum msc_status msc_record__take_header(struct msc_record *record, struct cJSON *header) {
    const char *path = record->path;
    int64_t schema = 0;
    int64_t parallel = 0;
    const char *seed = NULL;
    record->header = header;
    MSC_TRY(msc_json_get_i64(&schema, header, "schema", path));
    if (schema != MSC_RECORD_SCHEMA) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: its schema is %lld, expected %d; read it with the "
                        "program that wrote it",
                        path, (long long)schema, MSC_RECORD_SCHEMA);
    }
    MSC_TRY(msc_json_get_text(&record->numerics, header, "numerics", path));
    MSC_TRY(msc_json_get_text(&seed, header, "seed", path));
    MSC_TRY(msc_json_get_i64(&parallel, header, "parallel", path));
    if (!msc_parse_u64(&record->seed, seed) || parallel < 1 || parallel > UINT32_MAX) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: seed or parallel of the header is out of range", path);
    }
    record->parallel = (uint32_t)parallel;
    MSC_TRY(msc_record_header_race(&record->race, header, path));
    MSC_TRY(msc_record_header_space(&record->space, &record->arena, header, path));
    MSC_TRY(msc_record_header_goal(&record->goal, record->space, header, path));
    return make_keys(record);
}

enum msc_status msc_record__add_trial(struct msc_record *record,
                                      const struct msc_record_line *line) {
    MSC_TRY(msc_grow(&record->trials, &record->trials_capacity, record->n_trials + 1,
                     sizeof *record->trials));
    struct msc_record_packed *packed = msc_record__pack(&record->trial_arena, record->space, line);
    MSC_TRY(MSC_ALLOCATED(packed));
    record->trials[record->n_trials++] = packed;
    return MSC_OK;
}

enum msc_status msc_record__add_segment(struct msc_record *record,
                                        const struct msc_record_segment *segment) {
    MSC_TRY(msc_grow(&record->segments, &record->segments_capacity, record->n_segments + 1,
                     sizeof *record->segments));
    struct msc_record_segment copy = *segment;
    copy.numerics = msc_arena_strdup(&record->arena, segment->numerics);
    MSC_TRY(MSC_ALLOCATED(copy.numerics));
    record->segments[record->n_segments++] = copy;
    return MSC_OK;
}

void msc_record__forget_uncommitted(struct msc_record *record) {
    record->n_trials = record->n_committed;
    record->n_segments = record->n_committed_segments;
    msc_str_clear(&record->buffer);
}

void msc_record_release(struct msc_record *record) {
    msc_record__forget_uncommitted(record);
    if (record->descriptor >= 0) {
        close(record->descriptor);
        record->descriptor = -1;
    }
}

void msc_record_close(struct msc_record *record) {
    if (!record) {
        return;
    }
    msc_record_release(record);
    cJSON_Delete(record->header);
    msc_arena_finish(&record->arena);
    msc_arena_finish(&record->trial_arena);
    msc_free(record->trials);
    msc_free(record->held);
    msc_free(record->counts);
    msc_free(record->segments);
    msc_str_finish(&record->buffer);
    msc_free(record->path);
    msc_free(record);
}

const char *msc_record_path(const struct msc_record *record) {
    return record->saved_path ? record->saved_path : record->path;
}

const struct cJSON *msc_record_header(const struct msc_record *record) {
    return record->header;
}

double msc_record_begun_s(const struct msc_record *record) {
    const cJSON *measured = msc_json_get(record->header, "measured");
    const cJSON *time = msc_json_get(measured, "time");
    double seconds = NAN;
    return cJSON_IsString(time) && msc_clock_parse(&seconds, time->valuestring) ? seconds : NAN;
}

const struct msc_space *msc_record_space(const struct msc_record *record) {
    return record->space;
}

const struct msc_goal *msc_record_goal(const struct msc_record *record) {
    return &record->goal;
}

const struct msc_race *msc_record_race(const struct msc_record *record) {
    return &record->race;
}

bool msc_record_is_raced_out(const struct msc_record *record, const struct msc_record_line *line) {
    const struct msc_outcome *outcome = &line->trial.outcome;
    return line->n_rungs > 0 && outcome->state == MSC_TRIAL_PRUNED &&
           msc_goal_is_estimate(&record->goal, &line->trial);
}

uint64_t msc_record_seed(const struct msc_record *record) {
    return record->seed;
}

uint32_t msc_record_parallel(const struct msc_record *record) {
    return record->parallel;
}

size_t msc_record_n_trials(const struct msc_record *record) {
    return record->n_trials;
}

size_t msc_record__n_held(const struct msc_record *record) {
    return record->held ? record->n_held : record->n_trials;
}

void msc_record__held(struct msc_record_line *out, const struct msc_record *record, size_t i) {
    int64_t id = record->held ? record->held[i] : (int64_t)i;
    msc_record__unpack(out, record->trials[i], id, record->space, &record->goal);
}

// The index of a trial in `trials`; SIZE_MAX if the trial is not held.
static size_t place_of(const struct msc_record *record, int64_t id) {
    if (id < 0 || (size_t)id >= record->n_trials) {
        return SIZE_MAX;
    }
    if (!record->held) {
        return (size_t)id;
    }
    size_t low = 0;
    size_t high = record->n_held;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (record->held[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < record->n_held && record->held[low] == id ? low : SIZE_MAX;
}

bool msc_record_holds(const struct msc_record *record, int64_t id) {
    return place_of(record, id) != SIZE_MAX;
}

struct msc_record_line msc_record_trial(const struct msc_record *record, size_t id) {
    size_t place = place_of(record, (int64_t)id);
    assert(place != SIZE_MAX);
    struct msc_record_line line;
    msc_record__held(&line, record, place);
    return line;
}

double msc_record_elapsed_s(const struct msc_record *record) {
    double elapsed_s = 0.0;
    for (size_t i = 0; i < msc_record__n_held(record); i++) {
        elapsed_s = fmax(elapsed_s, *msc_record__elapsed(record->trials[i]));
    }
    return elapsed_s;
}

size_t msc_record_line_number(const struct msc_record *record, int64_t id) {
    size_t n_before = 0;
    while (n_before < record->n_segments && record->segments[n_before].first <= id) {
        n_before++;
    }
    return 2 + n_before + (size_t)id;
}

void msc_record_leave_out(struct msc_record *record, int64_t id) {
    size_t place = place_of(record, id);
    assert(place != SIZE_MAX);
    msc_record__mark_left_out(record->trials[place]);
}

size_t msc_record_n_segments(const struct msc_record *record) {
    return record->n_segments;
}

const struct msc_record_segment *msc_record_segment(const struct msc_record *record, size_t i) {
    assert(i < record->n_segments);
    return &record->segments[i];
}

const char *msc_record_numerics(const struct msc_record *record, int64_t id) {
    const char *numerics = record->numerics;
    for (size_t i = 0; i < record->n_segments && record->segments[i].first <= id; i++) {
        numerics = record->segments[i].numerics;
    }
    return numerics;
}

uint64_t msc_record_n_bytes(const struct msc_record *record) {
    return record->n_bytes;
}

bool msc_record_was_cut(const struct msc_record *record) {
    return record->was_cut;
}
