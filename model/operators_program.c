// Plug-ins that are programs: requests and answers are lines of JSON (docs/operators.md). One
// program computes one joint at a time.
#include "model/operators_internal.h"

#include "base/alloc.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "base/program.h"
#include "base/file_hash.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A joint that takes longer than this is an error.
#define TIMEOUT_S 600.0
#define MOST_LENGTH (INT64_C(1) << 53)

struct opened_program {
    struct msc_program program;
    struct msc_arena arena;
    pthread_mutex_t lock; // held from a request to its answer
    bool *infers;
};

static void close_program(void *state) {
    struct opened_program *p = state;
    msc_program_finish(&p->program);
    pthread_mutex_destroy(&p->lock);
    msc_arena_finish(&p->arena);
    msc_free(p);
}

// ---- Requests ---------------------------------------------------------------------------------

static enum msc_status write_attr(struct msc_str *out, const struct msc_operator_attr *a) {
    msc_json_write_text(out, a->name);
    msc_str_append(out, ":{\"type\":");
    msc_json_write_text(out, a->type);
    msc_str_append(out, ",\"value\":");
    msc_json_write_text(out, a->value);
    msc_str_char(out, '}');
    return MSC_OK;
}

static enum msc_status write_tensor(struct msc_str *out, const struct msc_operator_tensor *t,
                                    bool has_data) {
    if (t->dtype == MSC_DTYPE_NONE) {
        msc_str_append(out, "null");
        return MSC_OK;
    }
    msc_str_printf(out, "{\"dtype\":\"%s\",\"dims\":[", msc_dtype_name(t->dtype));
    for (int i = 0; i < t->n_dims; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        msc_str_i64(out, t->dims[i]);
    }
    msc_str_char(out, ']');
    if (has_data) {
        size_t n_bytes = (size_t)msc_operator_n_elements(t) * msc_dtype_bytes(t->dtype);
        msc_str_append(out, ",\"data\":\"");
        MSC_TRY(msc_base64_write(out, t->data, n_bytes));
        msc_str_char(out, '"');
    }
    msc_str_char(out, '}');
    return MSC_OK;
}

static enum msc_status write_request(struct msc_str *out, bool infers,
                                     const struct msc_operator_call *call) {
    msc_str_clear(out);
    msc_str_printf(out, "{\"method\":\"%s\",\"joint\":", infers ? "infer" : "compute");
    msc_json_write_text(out, call->joint);
    msc_str_append(out, ",\"domain\":");
    msc_json_write_text(out, call->domain);
    msc_str_append(out, ",\"op\":");
    msc_json_write_text(out, call->op);
    msc_str_printf(out, ",\"version\":%lld,\"attrs\":{", (long long)call->version);
    for (int i = 0; i < call->n_attrs; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        MSC_TRY(write_attr(out, &call->attrs[i]));
    }
    msc_str_append(out, "},\"inputs\":[");
    for (int i = 0; i < call->n_inputs; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        MSC_TRY(write_tensor(out, &call->inputs[i], !infers));
    }
    msc_str_append(out, "],\"outputs\":[");
    for (int i = 0; i < call->n_outputs; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        MSC_TRY(infers ? (msc_str_append(out, "null"), MSC_OK)
                       : write_tensor(out, &call->outputs[i], false));
    }
    msc_str_append(out, "]}");
    return msc_str_status(out);
}

// ---- Answers ----------------------------------------------------------------------------------

static enum msc_status read_type(struct msc_operator_tensor *out, const cJSON *object,
                                 const char *where) {
    const char *dtype;
    const cJSON *dims, *item;
    *out = (struct msc_operator_tensor){.dtype = MSC_DTYPE_NONE};
    MSC_TRY(msc_json_get_text(&dtype, object, "dtype", where));
    MSC_TRY(msc_json_get_array(&dims, object, "dims", where));
    out->dtype = msc_dtype_find(dtype);
    if (out->dtype == MSC_DTYPE_NONE || cJSON_GetArraySize(dims) > MSC_MAX_DIMS) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: type '%s' with %d dimensions is not supported", where,
                        dtype, cJSON_GetArraySize(dims));
    }
    cJSON_ArrayForEach(item, dims) {
        if (!msc_json_read_i64(&out->dims[out->n_dims], item, -MOST_LENGTH, MOST_LENGTH)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: a length is not an integer up to 2^53", where);
        }
        out->n_dims++;
    }
    return MSC_OK;
}

static enum msc_status take_output(const struct msc_operator_call *call, int i, const cJSON *object,
                                   const char *where) {
    struct msc_operator_tensor *to = &call->outputs[i], from;
    const char *text;
    size_t n_bytes;
    MSC_TRY(read_type(&from, object, where));
    bool fits = from.dtype == to->dtype && from.n_dims == to->n_dims;
    for (int k = 0; fits && k < to->n_dims; k++) {
        fits = from.dims[k] >= 0 && (to->dims[k] < 0 || from.dims[k] == to->dims[k]);
    }
    if (!fits) {
        char found[MSC_DIMS_TEXT_BYTES], expected[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_INVALID, "%s is %s%s, expected %s%s", where,
                        msc_dtype_name(from.dtype), msc_dims_format(found, from.n_dims, from.dims),
                        msc_dtype_name(to->dtype), msc_dims_format(expected, to->n_dims, to->dims));
    }
    if (to->data == NULL) {
        MSC_TRY(call->allocate(call, i, from.dims));
    }
    MSC_TRY(msc_json_get_text(&text, object, "data", where));
    MSC_TRY(msc_base64_count(&n_bytes, text));
    if (n_bytes != (size_t)msc_operator_n_elements(to) * msc_dtype_bytes(to->dtype)) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: data has %zu bytes, expected %zu", where, n_bytes,
                        (size_t)msc_operator_n_elements(to) * msc_dtype_bytes(to->dtype));
    }
    return msc_base64_read(to->data, n_bytes, text);
}

static enum msc_status take_answer(bool infers, const struct msc_operator_call *call,
                                   const cJSON *answer) {
    const cJSON *list;
    MSC_TRY(msc_json_get_array(&list, answer, "outputs", "the answer"));
    if (cJSON_GetArraySize(list) != call->n_outputs) {
        return MSC_FAIL(MSC_E_INVALID, "the answer has %d outputs, expected %d",
                        cJSON_GetArraySize(list), call->n_outputs);
    }
    for (int i = 0; i < call->n_outputs; i++) {
        char where[32];
        snprintf(where, sizeof where, "output %d", i);
        const cJSON *object = cJSON_GetArrayItem(list, i);
        MSC_TRY(infers ? read_type(&call->outputs[i], object, where)
                       : take_output(call, i, object, where));
    }
    return MSC_OK;
}

// After an error other than {"error": text}, the program may still write an answer, which would be
// taken for the answer to the next request. So the program is ended.
static enum msc_status exchange(cJSON **answer, struct opened_program *p, bool infers,
                                const struct msc_operator_call *call) {
    if (!p->program.process) {
        return MSC_FAIL(MSC_E_IO, "the program was ended after an error");
    }
    MSC_TRY(write_request(&p->program.request, infers, call));
    enum msc_status status = msc_program_exchange(&p->program, answer);
    if (status != MSC_OK && status != MSC_E_STATE) {
        msc_program_kill(&p->program);
    }
    return status;
}

static enum msc_status call_program(void *state, bool infers,
                                    const struct msc_operator_call *call) {
    struct opened_program *p = state;
    cJSON *answer = NULL;
    pthread_mutex_lock(&p->lock);
    enum msc_status status = exchange(&answer, p, infers, call);
    pthread_mutex_unlock(&p->lock);
    status = status == MSC_OK ? take_answer(infers, call, answer) : status;
    cJSON_Delete(answer);
    return status;
}

// ---- Start ------------------------------------------------------------------------------------

static enum msc_status read_operator(struct msc_operator_def *out, bool *infers,
                                     const cJSON *object, struct msc_arena *arena) {
    const char *domain, *op;
    MSC_TRY(msc_json_get_text(&domain, object, "domain", "operators"));
    MSC_TRY(msc_json_get_text(&op, object, "op", "operators"));
    MSC_TRY(msc_json_get_bool(infers, object, "infers", "operators"));
    out->domain = msc_arena_strdup(arena, domain);
    out->op = msc_arena_strdup(arena, op);
    return MSC_ALLOCATED(out->domain && out->op);
}

static enum msc_status read_operators(struct msc_operators_source *out, struct opened_program *p,
                                      const cJSON *answer) {
    const cJSON *list, *item;
    MSC_TRY(msc_json_get_array(&list, answer, "operators", "the answer"));
    size_t n = (size_t)cJSON_GetArraySize(list);
    struct msc_operator_def *operators = msc_arena_array(&p->arena, n + 1, sizeof operators[0]);
    p->infers = msc_arena_array(&p->arena, n + 1, sizeof p->infers[0]);
    MSC_TRY(MSC_ALLOCATED(operators && p->infers));
    cJSON_ArrayForEach(item, list) {
        int i = out->n_operators++;
        MSC_TRY(read_operator(&operators[i], &p->infers[i], item, &p->arena));
    }
    out->operators = operators;
    out->infers = p->infers;
    return n > 0 ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "the program computes no operators");
}

static enum msc_status start(struct msc_operators_source *out, struct opened_program *p,
                             const char *path) {
    cJSON *answer = NULL;
    const char **argv = msc_arena_array(&p->arena, 3, sizeof argv[0]);
    char *copy = strchr(path, '/') != NULL ? msc_arena_strdup(&p->arena, path)
                                           : msc_arena_printf(&p->arena, "./%s", path);
    MSC_TRY(MSC_ALLOCATED(argv && copy));
    bool is_python = msc_path_ends_in(path, ".py");
    const char *python = getenv("MSCGYM_PYTHON"); // of the package that started this program
    argv[0] = !is_python ? copy : python && python[0] ? python : "python3";
    argv[1] = is_python ? copy : NULL;
    p->program = (struct msc_program){
        .kind = "operators", .timeout_s = TIMEOUT_S, .argv = argv, .name = copy};
    MSC_TRY(msc_file_hash(&out->identity, path));
    MSC_TRY(msc_program_start(&p->program, NULL, NULL));
    msc_str_append(&p->program.request, "{\"method\":\"init\",\"protocol\":1}");
    enum msc_status status = msc_program_exchange(&p->program, &answer);
    status = status == MSC_OK ? read_operators(out, p, answer) : status;
    cJSON_Delete(answer);
    out->name = copy;
    return msc_program_name_error(&p->program, status, "init");
}

enum msc_status msc_operators__open_program(struct msc_operators_source *out, const char *path) {
    struct opened_program *p = msc_alloc_zero(1, sizeof *p);
    MSC_TRY(MSC_ALLOCATED(p));
    pthread_mutex_init(&p->lock, NULL);
    enum msc_status status = start(out, p, path);
    if (status != MSC_OK) {
        close_program(p);
        return status;
    }
    out->call = call_program;
    out->state = p;
    out->close = close_program;
    return MSC_OK;
}
