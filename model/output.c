#include "model/output.h"

#include "base/file.h"
#include "base/json.h"
#include "data/array_file.h"
#include "graph/graph.h"
#include "graph/onnx/load.h"
#include "graph/tflite/tflite.h"
#include "tools/strategy.h"

#include <string.h>

// ---- Kinds of files ---------------------------------------------------------------------------

// The unread part of a file of protobuf fields.
struct fields {
    const unsigned char *at;
    const unsigned char *end;
};

static bool output_read_number(uint64_t *out, struct fields *f) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && f->at < f->end; shift += 7) {
        const unsigned char byte = *f->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return true;
        }
    }
    return false;
}

// Reads a field's key (number * 8 + wire type) and skips its value.
static bool skip_field(uint64_t *key, struct fields *f) {
    uint64_t n = 0;
    if (!output_read_number(key, f)) {
        return false;
    }
    switch (*key % 8) {
    case 0:
        return output_read_number(&n, f);
    case 1:
        n = 8;
        break;
    case 2:
        if (!output_read_number(&n, f)) {
            return false;
        }
        break;
    case 5:
        n = 4;
        break;
    default:
        return false;
    }
    bool is_inside = n <= (uint64_t)(f->end - f->at);
    f->at += is_inside ? n : 0;
    return is_inside;
}

static bool begins_with(const char *data, size_t n_bytes, const char *beginning) {
    size_t n = strlen(beginning);
    return n_bytes >= n && memcmp(data, beginning, n) == 0;
}

// True for a .tflite file, and for an ONNX ModelProto: protobuf fields up to the end of the file,
// one of which is a graph.
static enum msc_status looks_like_model(bool *out, const char *data, size_t n_bytes) {
    enum { GRAPH = 7 * 8 + 2, AT_IDENTIFIER = 4 };
    const unsigned char *begin = (const unsigned char *)data;
    struct fields f = {begin, begin + n_bytes};
    bool has_graph = false;
    *out = true;
    while (*out && f.at < f.end) {
        uint64_t key = 0;
        *out = skip_field(&key, &f);
        has_graph |= key == GRAPH;
    }
    *out = (*out && has_graph) ||
           (n_bytes > AT_IDENTIFIER &&
            begins_with(data + AT_IDENTIFIER, n_bytes - AT_IDENTIFIER, MSC_TFLITE_IDENTIFIER));
    return MSC_OK;
}

// True for a log: its lines begin with a date, "2026-".
static enum msc_status looks_like_log(bool *out, const char *data, size_t n_bytes) {
    size_t n_digits = 0;
    while (n_digits < n_bytes && data[n_digits] >= '0' && data[n_digits] <= '9') {
        n_digits++;
    }
    *out = n_digits == 4 && n_digits < n_bytes && data[n_digits] == '-';
    return MSC_OK;
}

// *out remains NULL if the data is not JSON.
static enum msc_status output_parse(cJSON **out, const char *data, size_t n_bytes) {
    enum msc_status status = msc_json_parse(out, data, n_bytes, "the file");
    return status == MSC_E_NOMEM ? status : MSC_OK;
}

static enum msc_status looks_like_strategy(bool *out, const char *data, size_t n_bytes) {
    static const char beginning[] = "mscgym.strategy.";
    cJSON *json = NULL;
    MSC_TRY(output_parse(&json, data, n_bytes));
    const cJSON *schema = msc_json_get(json, "schema");
    *out = cJSON_IsString(schema) &&
           strncmp(schema->valuestring, beginning, sizeof beginning - 1) == 0;
    cJSON_Delete(json);
    return MSC_OK;
}

// The end of the first occurrence of `word` before `end`; NULL if there is none.
static const char *find_word(const char *data, const char *end, const char *word) {
    size_t length = strlen(word);
    for (; data != NULL && (size_t)(end - data) >= length; data++) {
        if (memcmp(data, word, length) == 0) {
            return data + length;
        }
    }
    return NULL;
}

// The text form begins with the line "NAME <INPUTS: ...| OUTPUTS: ...>".
static bool looks_like_graph_text(const char *data, size_t n_bytes) {
    const char *end = memchr(data, '\n', n_bytes);
    const char *inputs = end == NULL ? NULL : find_word(data, end, " <INPUTS: ");
    return find_word(inputs, end, "| OUTPUTS: ") != NULL;
}

static enum msc_status looks_like_graph(bool *out, const char *data, size_t n_bytes) {
    cJSON *json = NULL;
    if (looks_like_graph_text(data, n_bytes)) {
        *out = true;
        return MSC_OK;
    }
    MSC_TRY(output_parse(&json, data, n_bytes));
    *out =
        cJSON_IsArray(msc_json_get(json, "nodes")) && cJSON_IsArray(msc_json_get(json, "outputs"));
    cJSON_Delete(json);
    return MSC_OK;
}

// True if every line has the worker name "mscgym". Lines that Optuna adds have other worker names.
static enum msc_status looks_like_journal(bool *out, const char *data, size_t n_bytes) {
    static const char writer[] = ",\"worker_id\":\"mscgym\",";
    static const char beginning[] = "{\"op_code\":";
    const char *line = data, *end = data + n_bytes;
    *out = true;
    while (*out && line < end) {
        size_t n = sizeof beginning - 1 + 1; // the key and one digit for the operation
        const char *next = memchr(line, '\n', (size_t)(end - line));
        *out = next && (size_t)(next - line) > n + sizeof writer &&
               memcmp(line, beginning, n - 1) == 0 &&
               memcmp(line + n, writer, sizeof writer - 1) == 0;
        line = *out ? next + 1 : end;
    }
    return MSC_OK;
}

static enum msc_status looks_like_page(bool *out, const char *data, size_t n_bytes) {
    *out = begins_with(data, n_bytes, MSC_OUTPUT_PAGE_BEGINNING);
    return MSC_OK;
}

static enum msc_status looks_like_figure(bool *out, const char *data, size_t n_bytes) {
    *out = begins_with(data, n_bytes, MSC_OUTPUT_FIGURE_BEGINNING);
    return MSC_OK;
}

static enum msc_status looks_like_gguf(bool *out, const char *data, size_t n_bytes) {
    *out = begins_with(data, n_bytes, "GGUF");
    return MSC_OK;
}

static enum msc_status looks_like_types(bool *out, const char *data, size_t n_bytes) {
    *out = begins_with(data, n_bytes, "^") && find_word(data, data + n_bytes, "$=") != NULL;
    return MSC_OK;
}

static const struct kind {
    const char *name;
    enum msc_status (*looks)(bool *out, const char *data, size_t n_bytes);
} kinds[] = {
    [MSC_OUTPUT_MODEL] = {"an ONNX or .tflite model", looks_like_model},
    [MSC_OUTPUT_GGUF] = {"a GGUF model", looks_like_gguf},
    [MSC_OUTPUT_TYPES] = {"a list of tensor types", looks_like_types},
    [MSC_OUTPUT_STRATEGY] = {"a strategy file", looks_like_strategy},
    [MSC_OUTPUT_GRAPH] = {"an MSCGraph", looks_like_graph},
    [MSC_OUTPUT_LOG] = {"a log of a search", looks_like_log},
    [MSC_OUTPUT_JOURNAL] = {"a journal written only by mscgym", looks_like_journal},
    [MSC_OUTPUT_PAGE] = {"a page of a report", looks_like_page},
    [MSC_OUTPUT_FIGURE] = {"a figure of a report", looks_like_figure},
};

// Only regular files are checked. For other files, the writer decides; a log, for example, may go
// to a terminal.
static enum msc_status check_kind(struct msc_arena *arena, enum msc_output kind, const char *what,
                                  const char *path) {
    const void *data = NULL;
    size_t n_bytes = 0;
    char *place = NULL;
    bool fits = true;
    enum msc_status status = msc_path_planned(&place, arena, path);
    if (kind == MSC_OUTPUT_ANY || (status != MSC_OK && status != MSC_E_NOMEM)) {
        return MSC_OK;
    }
    MSC_TRY(status);
    if (msc_file_map(&data, &n_bytes, place) != MSC_OK) {
        return MSC_OK;
    }
    if (n_bytes > 0) {
        status = kinds[kind].looks(&fits, data, n_bytes);
    }
    msc_file_unmap(data, n_bytes);
    MSC_TRY(status);
    return fits ? MSC_OK
                : MSC_FAIL(
                      MSC_E_INVALID,
                      "%s: %s would replace this file, which is not %s; name another, or remove "
                      "it first",
                      path, what, kinds[kind].name);
}

enum msc_status msc_output_claim_graph(struct msc_file_set *files, const char *what,
                                       const char *path) {
    const char *const *weights;
    size_t n;
    MSC_TRY(msc_output_claim(files, MSC_OUTPUT_GRAPH, what, path));
    MSC_TRY(msc_graph_companions(&weights, &n, &files->arena, path));
    if (!msc_file_exists(path) && msc_file_exists(weights[0])) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %s would replace this file, which has no %s next to it; name "
                        "another, or remove it first",
                        weights[0], what, msc_path_name(path));
    }
    return msc_output_claim(files, MSC_OUTPUT_ANY, what, weights[0]);
}

enum msc_status msc_output_is_whole(bool *out, enum msc_output kind, const char *path) {
    struct msc_strategy *strategy = NULL;
    const void *data = NULL;
    size_t n_bytes = 0;
    enum msc_status status = MSC_OK;
    *out = true;
    if (msc_file_map(&data, &n_bytes, path) != MSC_OK) {
        return MSC_OK;
    }
    if (kind == MSC_OUTPUT_STRATEGY) {
        status = msc_strategy_load(&strategy, path);
        *out = status == MSC_OK;
        status = status == MSC_E_NOMEM ? status : MSC_OK;
        msc_strategy_destroy(strategy);
    } else if (kind != MSC_OUTPUT_LOG || n_bytes > 0) { // a new log is empty
        status = kinds[kind].looks(out, data, n_bytes);
    }
    msc_file_unmap(data, n_bytes);
    return status;
}

// ---- Sets of files ----------------------------------------------------------------------------

enum msc_status msc_output_read_model(struct msc_file_set *files, const char *path) {
    const char *const *beside = NULL;
    size_t n = 0;
    MSC_TRY(msc_file_set_read(files, "the model", path));
    MSC_TRY(msc_graph_companions(&beside, &n, &files->arena, path));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_file_set_read(files, "a file of the model's weights", beside[i]));
    }
    return MSC_OK;
}

enum msc_status msc_output_claim(struct msc_file_set *files, enum msc_output kind, const char *what,
                                 const char *path) {
    MSC_TRY(msc_file_set_write(files, what, path));
    if (!path) {
        return MSC_OK;
    }
    MSC_TRY(check_kind(&files->arena, kind, what, path));
    if (kind != MSC_OUTPUT_MODEL) {
        return MSC_OK;
    }
    if (msc_path_ends_in(path, MSC_TFLITE_SUFFIX)) {
        return MSC_OK;
    }
    if (msc_path_ends_in(path, ".gguf")) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %s is a model: GGUF is written only by `mscgym export`, from the "
                        "record of a search",
                        path, what);
    }
    if (!msc_path_ends_in(path, ".onnx")) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: %s is a model: expected a name that ends in .onnx, or in .tflite for "
                        "TensorFlow Lite",
                        path, what);
    }
    // The weights, if the model is too large for one file.
    const char *data_path = msc_arena_printf(&files->arena, "%s.data", path);
    MSC_TRY(MSC_ALLOCATED(data_path));
    return msc_file_set_write(files, what, data_path);
}

// ---- Arrays -----------------------------------------------------------------------------------

// True for "NAME" or "NAME/12".
static bool is_name_or_part(const char *old, const char *name) {
    size_t length = strlen(name);
    if (strncmp(old, name, length) != 0) {
        return false;
    }
    const char *digits = old + length + 1;
    return old[length] == '\0' || (old[length] == '/' && digits[0] != '\0' &&
                                   digits[strspn(digits, "0123456789")] == '\0');
}

static bool is_any_of(const char *old, const char *const names[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (is_name_or_part(old, names[i])) {
            return true;
        }
    }
    return false;
}

enum msc_status msc_output_check_arrays(const char *path, const char *const names[], size_t n) {
    struct msc_arena arena = {0};
    const char **old = NULL;
    const char *other = NULL;
    size_t n_old = 0;
    if (!msc_file_exists(path)) {
        return MSC_OK;
    }
    enum msc_status status = msc_array_file_names(&old, &n_old, &arena, path);
    for (size_t i = 0; status == MSC_OK && !other && i < n_old; i++) {
        other = is_any_of(old[i], names, n) ? NULL : old[i];
    }
    if (other || (status != MSC_OK && status != MSC_E_NOMEM)) {
        status = MSC_FAIL(MSC_E_INVALID,
                          "%s: --output would replace this file, which holds other arrays than "
                          "outputs of this model%s%s; name another, or remove it first",
                          path, other ? ", such as " : "", other ? other : "");
    }
    msc_arena_finish(&arena);
    return status;
}
