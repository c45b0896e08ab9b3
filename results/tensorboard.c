#include "results/tensorboard.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "records/record_query.h"
#include "results/event_file.h"

#include <math.h>
#include <string.h>

// Maximum number of values in one event: metrics, the best of each objective, the violation.
enum { MAX_VALUES = MSC_MAX_METRICS + MSC_MAX_OBJECTIVES + 1 };

struct msc_tensorboard {
    struct msc_arena arena;
    char *folder;
    struct msc_event_file *file;
    size_t n_written; // trials written so far
    double begun_s;
    double best[MSC_MAX_OBJECTIVES]; // NaN: none yet
    char *metric_tags[MSC_MAX_METRICS], *best_tags[MSC_MAX_OBJECTIVES];
    char violation_tag[16];
};

// ---- Earlier runs ------------------------------------------------------------------------------

struct past_runs {
    const char *identity; // identity of the record that is written now
    bool is_same;         // the last launch in the files wrote this record
    size_t n_trials;      // trials in the files, without those that later launches dropped
};

static enum msc_status take_event(void *payload, const MscTb__Event *event) {
    struct past_runs *past = payload;
    size_t step = event->step > 0 ? (size_t)event->step : 0;
    if (event->what_case == MSC_TB__EVENT__WHAT_SESSION_LOG &&
        event->session_log->status == MSC_TB__SESSION_LOG__SESSION_STATUS__START) {
        past->is_same = strcmp(event->session_log->msg, past->identity) == 0;
        past->n_trials = step < past->n_trials ? step : past->n_trials;
    }
    if (event->what_case == MSC_TB__EVENT__WHAT_SUMMARY && event->summary->n_value > 0 &&
        event->summary->value[0]->value_case == MSC_TB__SUMMARY__VALUE__VALUE_SIMPLE_VALUE) {
        past->n_trials = step >= past->n_trials ? step + 1 : past->n_trials;
    }
    return MSC_OK;
}

// ---- Events -----------------------------------------------------------------------------------

static MscTb__Event event_at(const struct msc_tensorboard *board, double elapsed_s, size_t step) {
    MscTb__Event event = MSC_TB__EVENT__INIT;
    event.wall_time = board->begun_s + elapsed_s;
    event.step = (int64_t)step;
    return event;
}

static double elapsed_before(const struct msc_record *record, size_t n_trials) {
    return n_trials > 0 ? msc_record_trial(record, n_trials - 1).elapsed_s : 0.0;
}

static enum msc_status write_start(struct msc_tensorboard *board, const struct msc_record *record,
                                   char *identity) {
    MscTb__SessionLog log = MSC_TB__SESSION_LOG__INIT;
    MscTb__Event event =
        event_at(board, elapsed_before(record, board->n_written), board->n_written);
    log.status = MSC_TB__SESSION_LOG__SESSION_STATUS__START;
    log.msg = identity;
    event.what_case = MSC_TB__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    return msc_event_file_add(board->file, &event);
}

// `text` is displayed as Markdown, in which lines indented by four spaces are shown as they are.
static enum msc_status write_text(struct msc_tensorboard *board, const struct msc_record *record,
                                  size_t step, char *tag, struct msc_str *text) {
    char plugin[] = "text";
    MscTb__SummaryMetadata__PluginData data = MSC_TB__SUMMARY_METADATA__PLUGIN_DATA__INIT;
    MscTb__SummaryMetadata metadata = MSC_TB__SUMMARY_METADATA__INIT;
    MscTb__TensorShapeProto shape = MSC_TB__TENSOR_SHAPE_PROTO__INIT;
    MscTb__TensorProto tensor = MSC_TB__TENSOR_PROTO__INIT;
    MscTb__Summary__Value value = MSC_TB__SUMMARY__VALUE__INIT;
    MscTb__Summary summary = MSC_TB__SUMMARY__INIT;
    MscTb__Event event = event_at(board, elapsed_before(record, step), step);
    ProtobufCBinaryData bytes = {.len = text->length, .data = (uint8_t *)text->data};
    MscTb__Summary__Value *values[] = {&value};
    MSC_TRY(msc_str_status(text));
    data.plugin_name = plugin;
    metadata.plugin_data = &data;
    tensor.dtype = MSC_TB__DATA_TYPE__DT_STRING;
    tensor.tensor_shape = &shape; // no dimensions: a scalar string
    tensor.n_string_val = 1;
    tensor.string_val = &bytes;
    value.tag = tag;
    value.metadata = &metadata;
    value.value_case = MSC_TB__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    summary.n_value = 1;
    summary.value = values;
    event.what_case = MSC_TB__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return msc_event_file_add(board->file, &event);
}

// Appends lines as a Markdown code block.
static void append_block(struct msc_str *out, const char *text) {
    struct msc_str shown = {0};
    msc_shown_append_lines(&shown, text);
    out->failed |= shown.failed;
    const char *line = msc_str_text(&shown);
    while (*line) {
        size_t length = strcspn(line, "\n");
        msc_str_append(out, "    ");
        msc_str_append_n(out, line, length);
        msc_str_char(out, '\n');
        line += length + (line[length] == '\n');
    }
    msc_str_finish(&shown);
}

static enum msc_status write_config(struct msc_tensorboard *board,
                                    const struct msc_record *record) {
    static char tag[] = "config";
    static const char *const keys[] = {"config", "env", "agent"};
    const cJSON *header = msc_record_header(record);
    struct msc_str json = {0}, text = {0};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const cJSON *part = msc_json_get(header, keys[i]);
        if (part) {
            msc_str_printf(&text, "%s%s\n\n", i > 0 ? "\n" : "", keys[i]);
            msc_json_write_pretty(&json, part);
            append_block(&text, msc_str_text(&json));
            text.failed |= json.failed;
            msc_str_clear(&json);
        }
    }
    enum msc_status status = write_text(board, record, board->n_written, tag, &text);
    msc_str_finish(&json);
    msc_str_finish(&text);
    return status;
}

static void note_best(struct msc_tensorboard *board, const struct msc_goal *goal,
                      const struct msc_outcome *outcome) {
    for (size_t i = 0; outcome->state == MSC_TRIAL_COMPLETE && i < goal->n_objectives; i++) {
        double value = outcome->metrics[goal->objectives[i].metric];
        bool is_better = goal->objectives[i].is_maximised ? !(value <= board->best[i])
                                                          : !(value >= board->best[i]);
        board->best[i] = is_better ? value : board->best[i];
    }
}

struct scalars {
    MscTb__Summary__Value values[MAX_VALUES];
    MscTb__Summary__Value *pointers[MAX_VALUES];
    size_t n;
};

static void add_scalar(struct scalars *s, char *tag, double value) {
    if (!isfinite(value)) {
        return;
    }
    MscTb__Summary__Value *v = &s->values[s->n];
    *v = (MscTb__Summary__Value)MSC_TB__SUMMARY__VALUE__INIT;
    v->tag = tag;
    v->value_case = MSC_TB__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
    v->simple_value = (float)value;
    s->pointers[s->n++] = v;
}

// Writes one event per trial, so that an interrupted write leaves no partial trial.
static enum msc_status write_trial(struct msc_tensorboard *board, const struct msc_record *record,
                                   const struct msc_record_line *line) {
    const struct msc_space *space = msc_record_space(record);
    const struct msc_goal *goal = msc_record_goal(record);
    const struct msc_outcome *outcome = &line->trial.outcome;
    bool is_result = msc_trial_state_is_result(outcome->state);
    struct scalars scalars = {.n = 0};
    MscTb__Summary summary = MSC_TB__SUMMARY__INIT;
    MscTb__Event event = event_at(board, line->elapsed_s, (size_t)line->trial.id);
    note_best(board, goal, outcome);
    for (size_t i = 0; i < space->n_metrics; i++) {
        if (is_result || space->metrics[i].is_exact) {
            add_scalar(&scalars, board->metric_tags[i], outcome->metrics[i]);
        }
    }
    for (size_t i = 0; i < goal->n_objectives; i++) {
        add_scalar(&scalars, board->best_tags[i], board->best[i]);
    }
    if (goal->n_bounds > 0) {
        add_scalar(&scalars, board->violation_tag, outcome->violation);
    }
    summary.n_value = scalars.n;
    summary.value = scalars.pointers;
    event.what_case = MSC_TB__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return scalars.n > 0 ? msc_event_file_add(board->file, &event) : MSC_OK;
}

// ---- Opening ----------------------------------------------------------------------------------

// Names the run's folder: DIR/NAME for the record PATH/NAME.jsonl.
static enum msc_status name_folder(struct msc_tensorboard *board, const char *folder,
                                   const char *record_path) {
    const char *name = msc_path_name(record_path);
    size_t length = strlen(name);
    static const char ending[] = ".jsonl";
    if (length >= sizeof ending && strcmp(name + length - (sizeof ending - 1), ending) == 0) {
        length -= sizeof ending - 1;
    }
    board->folder = msc_arena_printf(&board->arena, "%s/%.*s", folder, (int)length, name);
    return MSC_ALLOCATED(board->folder);
}

static enum msc_status make_tags(struct msc_tensorboard *board, const struct msc_record *record) {
    const struct msc_space *space = msc_record_space(record);
    const struct msc_goal *goal = msc_record_goal(record);
    strcpy(board->violation_tag, "violation");
    for (size_t i = 0; i < space->n_metrics; i++) {
        board->metric_tags[i] =
            msc_arena_printf(&board->arena, "metrics/%s", space->metrics[i].name);
        MSC_TRY(MSC_ALLOCATED(board->metric_tags[i]));
    }
    for (size_t i = 0; i < goal->n_objectives; i++) {
        const char *name = space->metrics[goal->objectives[i].metric].name;
        board->best[i] = NAN;
        board->best_tags[i] = msc_arena_printf(&board->arena, "best/%s", name);
        MSC_TRY(MSC_ALLOCATED(board->best_tags[i]));
    }
    return MSC_OK;
}

static enum msc_status open_run(struct msc_tensorboard *board, const char *folder,
                                const struct msc_record *record) {
    char text[MSC_HASH_TEXT_BYTES];
    struct msc_hash identity;
    MSC_TRY(msc_record_identity(&identity, record));
    msc_hash_format(text, identity);
    struct past_runs past = {.identity = text};
    double begun_s = msc_record_begun_s(record);
    board->begun_s = isnan(begun_s) ? 0.0 : begun_s;
    MSC_TRY(name_folder(board, folder, msc_record_path(record)));
    MSC_TRY(make_tags(board, record));
    MSC_TRY(msc_event_file_read_all(board->folder, take_event, &past));
    size_t n_trials = msc_record_n_trials(record);
    past.n_trials = past.is_same ? past.n_trials : 0;
    board->n_written = past.n_trials < n_trials ? past.n_trials : n_trials;
    for (size_t i = 0; i < board->n_written; i++) {
        const struct msc_record_line line = msc_record_trial(record, i);
        note_best(board, msc_record_goal(record), &line.trial.outcome);
    }
    MSC_TRY(msc_event_file_create(&board->file, board->folder));
    MSC_TRY(write_start(board, record, text));
    return write_config(board, record);
}

enum msc_status msc_tensorboard_open(struct msc_tensorboard **out, const char *folder,
                                     const struct msc_record *record) {
    struct msc_tensorboard *board = msc_alloc_zero(1, sizeof *board);
    MSC_TRY(MSC_ALLOCATED(board));
    enum msc_status status = open_run(board, folder, record);
    if (status != MSC_OK) {
        msc_tensorboard_close(board);
        return status;
    }
    *out = board;
    return MSC_OK;
}

enum msc_status msc_tensorboard_follow(struct msc_tensorboard *board,
                                       const struct msc_record *record) {
    for (; board->n_written < msc_record_n_trials(record); board->n_written++) {
        const struct msc_record_line line = msc_record_trial(record, board->n_written);
        MSC_TRY(write_trial(board, record, &line));
    }
    return msc_event_file_flush(board->file);
}

enum msc_status msc_tensorboard_tell(struct msc_tensorboard *board, const struct msc_record *record,
                                     const char *tag, const char *text) {
    struct msc_str block = {0};
    char *copy = msc_arena_strdup(&board->arena, tag);
    append_block(&block, text);
    enum msc_status status = copy ? write_text(board, record, board->n_written, copy, &block)
                                  : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_str_finish(&block);
    return status == MSC_OK ? msc_event_file_flush(board->file) : status;
}

void msc_tensorboard_close(struct msc_tensorboard *board) {
    if (board) {
        msc_event_file_close(board->file);
        msc_arena_finish(&board->arena);
        msc_free(board);
    }
}
