#include "data/tokens.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

// ---- Inputs -----------------------------------------------------------------------------------

// How an input follows from the ids.
enum made { MADE_NOT, MADE_ONES, MADE_POSITIONS, MADE_ZEROS, MADE_EMPTY };

static bool is_axis_of_samples(const struct msc_input_spec *spec, int axis) {
    return axis == (spec->is_batched ? spec->axis : 0);
}

// True if the length of the past may be 0.
static bool has_open_length(const struct msc_input_spec *spec) {
    bool has = false;
    for (int k = 0; k < spec->n_dims; k++) {
        has = has || (spec->dims[k] < 0 && !is_axis_of_samples(spec, k));
    }
    return has;
}

static enum made made_of(const struct msc_input_spec *spec) {
    static const struct {
        const char *name;
        enum made made;
    } rows[] = {{"attention_mask", MADE_ONES},
                {"position_ids", MADE_POSITIONS},
                {"token_type_ids", MADE_ZEROS}};
    static const char past[] = "past_key_values";
    if (strncmp(spec->name, past, strlen(past)) == 0 && spec->n_dims >= 3 && !spec->state) {
        return has_open_length(spec) ? MADE_EMPTY : MADE_NOT;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(spec->name, rows[i].name) == 0 && spec->n_dims == 2 && !spec->state) {
            return rows[i].made;
        }
    }
    return MADE_NOT;
}

size_t msc_tokens__find(const struct msc_input_spec specs[], size_t n_specs) {
    size_t found = MSC_TOKENS_NO_INPUT;
    for (size_t i = 0; i < n_specs; i++) {
        if (made_of(&specs[i]) != MADE_NOT) {
            continue;
        }
        if (found != MSC_TOKENS_NO_INPUT || specs[i].n_dims != 2 || specs[i].state ||
            !msc_dtype_is_integer(specs[i].dtype)) {
            return MSC_TOKENS_NO_INPUT;
        }
        found = i;
    }
    return found;
}

bool msc_tokens__is_made(const struct msc_source *source, size_t input) {
    return msc_tokens__find(source->specs, source->n_specs) != MSC_TOKENS_NO_INPUT &&
           made_of(&source->specs[input]) != MADE_NOT;
}

// The dims of the empty past for n samples.
static void past_dims(int64_t dims[MSC_MAX_DIMS], const struct msc_input_spec *spec, int64_t n) {
    bool has_none = false;
    for (int k = 0; k < spec->n_dims; k++) {
        bool is_samples = is_axis_of_samples(spec, k);
        bool is_open = spec->dims[k] < 0 && !is_samples;
        dims[k] = is_samples ? n : is_open && !has_none ? 0 : spec->dims[k] < 0 ? 1 : spec->dims[k];
        has_none = has_none || is_open;
    }
}

// Makes an input for ids [n, length].
static enum msc_status make_array(struct msc_array **out, const struct msc_input_spec *spec,
                                  int64_t n, int64_t length) {
    const int64_t shape[2] = {n, length};
    enum made made = made_of(spec);
    int64_t dims[MSC_MAX_DIMS];
    struct msc_array *wide = NULL;
    if (made == MADE_EMPTY) {
        past_dims(dims, spec, n);
        return msc_array_create(out, spec->dtype, spec->n_dims, dims);
    }
    MSC_TRY(msc_array_create(&wide, MSC_DTYPE_I64, 2, shape));
    int64_t *values = msc_array_data(wide);
    for (int64_t i = 0; i < n * length; i++) {
        values[i] = made == MADE_ONES ? 1 : made == MADE_POSITIONS ? i % length : 0;
    }
    enum msc_status status = msc_array_convert(out, wide, spec->dtype);
    msc_array_release(wide);
    return status;
}

static enum msc_status make_input(struct msc_source *source, const struct msc_samples *ids,
                                  size_t input) {
    const struct msc_input_spec *spec = &source->specs[input];
    bool is_parts = ids->form == MSC_SAMPLES_PARTS;
    for (size_t i = 0; i < ids->n_arrays; i++) {
        const struct msc_array *like = ids->arrays[i];
        struct msc_array *made = NULL;
        int64_t length = msc_array_dim(like, msc_array_n_dims(like) - 1);
        MSC_TRY(
            make_array(&made, spec, length > 0 ? msc_array_n_elements(like) / length : 0, length));
        enum msc_status status =
            is_parts ? msc_samples__add_part(&source->samples[input], spec, made, source->path)
                     : msc_samples__from_array(&source->samples[input], spec, made, source->path);
        msc_array_release(made);
        MSC_TRY(status);
    }
    return MSC_OK;
}

enum msc_status msc_tokens__make(struct msc_source *source, size_t ids) {
    for (size_t i = 0; i < source->n_specs; i++) {
        if (i != ids && source->samples[i].n_arrays == 0) {
            MSC_TRY(make_input(source, &source->samples[ids], i));
        }
    }
    return MSC_OK;
}

// ---- Arrays -----------------------------------------------------------------------------------

// The number of ids of a sample that is cut from a text; 0: unknown.
static int64_t length_of(const struct msc_source *source, const struct msc_input_spec *spec) {
    return source->sequence > 0 ? source->sequence : spec->dims[1] > 0 ? spec->dims[1] : 0;
}

// Cuts `n` ids of a text into samples.
static enum msc_status cut(struct msc_source *source, size_t ids, const struct msc_array *array,
                           int64_t n) {
    const struct msc_input_spec *spec = &source->specs[ids];
    int64_t length = length_of(source, spec);
    struct msc_array *rows = NULL;
    if (length == 0) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %" PRId64 " token ids without a length of samples; set "
                        "dataset.sequence, or --sequence, to the ids of a sample, or save an "
                        "array [samples, ids]",
                        source->path, n);
    }
    if (n < length) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %" PRId64 " token ids, but a sample has %" PRId64
                        "; add ids or set a smaller dataset.sequence",
                        source->path, n, length);
    }
    const int64_t dims[2] = {n / length, length};
    MSC_TRY(msc_array_create_from(&rows, msc_array_dtype(array), 2, dims, msc_array_data(array)));
    enum msc_status status =
        msc_samples__from_array(&source->samples[ids], spec, rows, source->path);
    msc_array_release(rows);
    return status;
}

enum msc_status msc_tokens__take(struct msc_source *source, size_t ids,
                                 const struct msc_array *array) {
    bool is_integer = msc_dtype_is_integer(msc_array_dtype(array));
    bool is_flat = msc_array_n_dims(array) == 1;
    if (is_integer && (is_flat || (source->sequence > 0 && msc_array_n_dims(array) == 2))) {
        return cut(source, ids, array, msc_array_n_elements(array));
    }
    return msc_samples__from_array(&source->samples[ids], &source->specs[ids], array, source->path);
}

// ---- Lines ------------------------------------------------------------------------------------

// The ids of all lines, one line after another.
struct lines {
    const char *path;
    int64_t *ids;
    size_t n, capacity;
    size_t *ends; // [n_lines] number of ids up to the end of each line
    size_t n_lines, lines_capacity;
    size_t number; // of the line in the file
};

static enum msc_status fail_line(const struct lines *l) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: line %zu: expected a list of token ids, or an object with such a list "
                    "under \"ids\" or \"input_ids\"",
                    l->path, l->number);
}

static enum msc_status add_line(struct lines *l, const cJSON *value) {
    const cJSON *named = msc_json_get(value, "ids"), *item;
    named = named ? named : msc_json_get(value, "input_ids");
    const cJSON *list = cJSON_IsObject(value) ? named : value;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0) {
        return fail_line(l);
    }
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(msc_grow(&l->ids, &l->capacity, l->n + 1, sizeof l->ids[0]));
        if (!msc_json_read_i64(&l->ids[l->n], item, 0, INT32_MAX)) {
            return fail_line(l);
        }
        l->n++;
    }
    MSC_TRY(msc_grow(&l->ends, &l->lines_capacity, l->n_lines + 1, sizeof l->ends[0]));
    l->ends[l->n_lines++] = l->n;
    return MSC_OK;
}

static enum msc_status read_line(struct lines *l, const char *text, size_t n) {
    struct msc_str place = {0};
    cJSON *value = NULL;
    msc_str_printf(&place, "%s: line %zu", l->path, l->number);
    enum msc_status status = msc_str_status(&place);
    if (status == MSC_OK) {
        status = msc_json_parse(&value, text, n, msc_str_text(&place));
    }
    if (status == MSC_OK) {
        status = add_line(l, value);
    }
    cJSON_Delete(value);
    msc_str_finish(&place);
    return status;
}

static enum msc_status read_lines(struct lines *l) {
    char *text = NULL;
    size_t n = 0;
    MSC_TRY(msc_file_read(&text, &n, l->path));
    enum msc_status status = MSC_OK;
    for (size_t at = 0; status == MSC_OK && at < n;) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t end = newline ? (size_t)(newline - text) : n;
        size_t blank = strspn(text + at, " \t\r");
        l->number++;
        status = at + blank >= end ? MSC_OK : read_line(l, text + at, end - at);
        at = end + 1;
    }
    msc_free(text);
    return status;
}

static size_t length_of_line(const struct lines *l, size_t i) {
    return l->ends[i] - (i > 0 ? l->ends[i - 1] : 0);
}

static bool are_lines_equal(const struct lines *l) {
    bool are = true;
    for (size_t i = 1; i < l->n_lines; i++) {
        are = are && length_of_line(l, i) == length_of_line(l, 0);
    }
    return are;
}

// Takes each line as a sample of its own length.
static enum msc_status take_parts(struct msc_source *source, size_t ids, const struct lines *l) {
    for (size_t i = 0; i < l->n_lines; i++) {
        const int64_t dims[2] = {1, (int64_t)length_of_line(l, i)};
        struct msc_array *part = NULL;
        MSC_TRY(
            msc_array_create_from(&part, MSC_DTYPE_I64, 2, dims, l->ids + l->ends[i] - dims[1]));
        enum msc_status status =
            msc_samples__add_part(&source->samples[ids], &source->specs[ids], part, source->path);
        msc_array_release(part);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static enum msc_status take_lines(struct msc_source *source, size_t ids, const struct lines *l) {
    bool is_text = length_of(source, &source->specs[ids]) > 0;
    if (l->n == 0) {
        return MSC_FAIL(MSC_E_INVALID, "%s: no token ids", source->path);
    }
    if (!is_text && !are_lines_equal(l)) {
        return take_parts(source, ids, l);
    }
    int64_t row = is_text ? (int64_t)l->n : (int64_t)(l->n / l->n_lines);
    const int64_t dims[2] = {(int64_t)l->n / row, row};
    struct msc_array *array = NULL;
    MSC_TRY(msc_array_create_from(&array, MSC_DTYPE_I64, 2, dims, l->ids));
    enum msc_status status =
        is_text ? cut(source, ids, array, (int64_t)l->n) : msc_tokens__take(source, ids, array);
    msc_array_release(array);
    return status;
}

enum msc_status msc_tokens__open_lines(struct msc_source *source) {
    size_t ids = msc_tokens__find(source->specs, source->n_specs);
    struct lines l = {.path = source->path};
    if (ids == MSC_TOKENS_NO_INPUT) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: lines of token ids need a model with one input of ids, integers of "
                        "two axes; save a .npz with an array for each input, named after it",
                        source->path);
    }
    enum msc_status status = read_lines(&l);
    if (status == MSC_OK) {
        status = take_lines(source, ids, &l);
    }
    if (status == MSC_OK) {
        status = msc_tokens__make(source, ids);
    }
    msc_free(l.ids);
    msc_free(l.ends);
    return status;
}
