// Attributes of external joints: ONNX's message to text and back, and walks over their graphs.
#include "graph/onnx/onnx_external.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "graph/onnx/onnx_file_internal.h"
#include "graph/op_attrs.h"

#include <math.h>
#include <string.h>

// ---- To text ----------------------------------------------------------------------------------

// Memory that protobuf allocates in an arena.
static void *arena_allocate(void *arena, size_t n_bytes) {
    return msc_arena_array(arena, n_bytes + 1, 1);
}

static void arena_free(void *arena, void *memory) {
    (void)arena;
    (void)memory;
}

static enum msc_status write_proto(struct msc_str *out, const Onnx__AttributeProto *a) {
    size_t n = onnx__attribute_proto__get_packed_size(a);
    uint8_t *bytes = msc_alloc_zero(n + 1, 1);
    MSC_TRY(MSC_ALLOCATED(bytes));
    onnx__attribute_proto__pack(a, bytes);
    msc_str_append(out, "proto ");
    enum msc_status status = msc_base64_write(out, bytes, n);
    msc_free(bytes);
    return status;
}

static bool is_text(ProtobufCBinaryData s) {
    return s.len == 0 || (memchr(s.data, '\0', s.len) == NULL &&
                          msc_utf8_length((const char *)s.data, s.len) == s.len);
}

static bool are_finite(const Onnx__AttributeProto *a) {
    bool are = true;
    for (size_t i = 0; i < a->n_floats; i++) {
        are = are && isfinite(a->floats[i]);
    }
    return are;
}

static bool are_texts(const Onnx__AttributeProto *a) {
    bool are = true;
    for (size_t i = 0; i < a->n_strings; i++) {
        are = are && is_text(a->strings[i]);
    }
    return are;
}

static enum msc_status write_strings(struct msc_str *out, const Onnx__AttributeProto *a,
                                     struct msc_arena *arena) {
    msc_str_append(out, "strings [");
    for (size_t i = 0; i < a->n_strings; i++) {
        const char *text = msc_arena_strndup(
            arena, a->strings[i].len == 0 ? "" : (char *)a->strings[i].data, a->strings[i].len);
        MSC_TRY(MSC_ALLOCATED(text));
        msc_str_append(out, i > 0 ? "," : "");
        msc_json_write_text(out, text);
    }
    msc_str_char(out, ']');
    return MSC_OK;
}

// Files of old writers lack the type.
static Onnx__AttributeProto__AttributeType type_of(const Onnx__AttributeProto *a) {
    return a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED ? a->type
           : a->has_i         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT
           : a->has_f         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT
           : a->has_s         ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING
           : a->n_ints > 0    ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS
           : a->n_floats > 0  ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS
           : a->n_strings > 0 ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
                              : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

static enum msc_status write_value(struct msc_str *out, const Onnx__AttributeProto *a,
                                   struct msc_arena *arena) {
    switch (type_of(a)) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        msc_str_printf(out, "int %lld", (long long)a->i);
        return MSC_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        if (isnan(a->f)) {
            break;
        }
        msc_str_append(out, "float ");
        msc_str_float(out, a->f);
        return MSC_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        if (!is_text(a->s)) {
            break;
        }
        msc_str_append(out, "string ");
        msc_str_append_n(out, a->s.len == 0 ? "" : (const char *)a->s.data, a->s.len);
        return MSC_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS:
        msc_str_append(out, "ints ");
        msc_attr_write_ints(out, a->ints, a->n_ints);
        return MSC_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS:
        if (!are_finite(a)) {
            break;
        }
        msc_str_append(out, "floats ");
        msc_attr_write_floats(out, a->floats, a->n_floats);
        return MSC_OK;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS:
        if (!are_texts(a)) {
            break;
        }
        return write_strings(out, a, arena);
    default:
        break;
    }
    return write_proto(out, a);
}

enum msc_status msc_onnx__attr_to_text(const char **out, const Onnx__AttributeProto *a,
                                       struct msc_arena *arena) {
    struct msc_str text = {0};
    bool is_plain =
        (a->doc_string == NULL || a->doc_string[0] == '\0') && a->base.n_unknown_fields == 0;
    enum msc_status status = is_plain ? write_value(&text, a, arena) : write_proto(&text, a);
    status = status == MSC_OK ? msc_str_status(&text) : status;
    *out = status == MSC_OK ? msc_str_keep(&text, arena) : NULL;
    msc_str_finish(&text);
    return status == MSC_OK ? MSC_ALLOCATED(*out) : status;
}

// ---- From text --------------------------------------------------------------------------------

static enum msc_status read_proto(Onnx__AttributeProto **out, const char *text,
                                  struct msc_arena *arena) {
    ProtobufCAllocator allocator = {arena_allocate, arena_free, arena};
    size_t n;
    MSC_TRY(msc_base64_count(&n, text));
    uint8_t *bytes = msc_arena_array(arena, n + 1, 1);
    MSC_TRY(MSC_ALLOCATED(bytes));
    MSC_TRY(msc_base64_read(bytes, n, text));
    MSC_TRY(msc_onnx__check_message(bytes, n, &onnx__attribute_proto__descriptor, "proto"));
    *out = onnx__attribute_proto__unpack(&allocator, n, bytes);
    MSC_TRY(msc_arena_status(arena));
    return *out != NULL ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "not a message of ONNX");
}

static enum msc_status read_strings(Onnx__AttributeProto *a, const char *text,
                                    struct msc_arena *arena) {
    cJSON *list = NULL;
    const cJSON *item;
    MSC_TRY(msc_json_parse(&list, text, strlen(text), "strings"));
    enum msc_status status =
        cJSON_IsArray(list) ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "expected a list of strings");
    size_t n = (size_t)cJSON_GetArraySize(list);
    a->strings = msc_arena_array(arena, n + 1, sizeof a->strings[0]);
    status = status == MSC_OK ? MSC_ALLOCATED(a->strings) : status;
    cJSON_ArrayForEach(item, list) {
        if (status == MSC_OK && !cJSON_IsString(item)) {
            status = MSC_FAIL(MSC_E_INVALID, "expected a list of strings");
        }
        char *copy = status == MSC_OK ? msc_arena_strdup(arena, item->valuestring) : NULL;
        status = status == MSC_OK ? MSC_ALLOCATED(copy) : status;
        if (status == MSC_OK) {
            a->strings[a->n_strings++] = (ProtobufCBinaryData){strlen(copy), (uint8_t *)copy};
        }
    }
    cJSON_Delete(list);
    return status;
}

static enum msc_status read_numbers(Onnx__AttributeProto *a, const char *text, bool are_floats,
                                    struct msc_arena *arena) {
    size_t most = strlen(text) + 1;
    a->ints = msc_arena_array(arena, are_floats ? 1 : most, sizeof a->ints[0]);
    a->floats = msc_arena_array(arena, are_floats ? most : 1, sizeof a->floats[0]);
    MSC_TRY(MSC_ALLOCATED(a->ints && a->floats));
    int n = are_floats ? msc_attr_read_floats(a->floats, (int)most, text)
                       : msc_attr_read_ints(a->ints, (int)most, text);
    *(are_floats ? &a->n_floats : &a->n_ints) = n < 0 ? 0 : (size_t)n;
    return n >= 0 ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "expected numbers separated by commas");
}

// True if `text` begins with the type and a space; *value is what follows.
static bool has_type(const char **value, const char *text, const char *type) {
    size_t n = strlen(type);
    *value = text + n + 1;
    return strncmp(text, type, n) == 0 && text[n] == ' ';
}

static enum msc_status read_value(Onnx__AttributeProto *a, const char *text,
                                  struct msc_arena *arena) {
    const char *value;
    a->has_type = true;
    if (has_type(&value, text, "int")) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        a->has_i = msc_attr_read_int(&a->i, value);
        return a->has_i ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "expected an integer");
    }
    if (has_type(&value, text, "float")) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        a->has_f = msc_attr_read_float(&a->f, value);
        return a->has_f ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "expected a number");
    }
    if (has_type(&value, text, "string")) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        a->has_s = true;
        a->s = (ProtobufCBinaryData){strlen(value), (uint8_t *)msc_arena_strdup(arena, value)};
        return MSC_ALLOCATED(a->s.data);
    }
    if (has_type(&value, text, "ints")) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        return read_numbers(a, value, false, arena);
    }
    if (has_type(&value, text, "floats")) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
        return read_numbers(a, value, true, arena);
    }
    if (has_type(&value, text, "strings")) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
        return read_strings(a, value, arena);
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "expected int, float, string, ints, floats, strings or proto, and a value");
}

enum msc_status msc_onnx__attr_from_text(Onnx__AttributeProto **out, const char *name,
                                         const char *text, struct msc_arena *arena) {
    const char *value;
    enum msc_status status;
    if (has_type(&value, text, "proto")) {
        status = read_proto(out, value, arena);
    } else {
        *out = msc_arena_alloc(arena, sizeof **out);
        MSC_TRY(MSC_ALLOCATED(*out));
        onnx__attribute_proto__init(*out);
        status = read_value(*out, text, arena);
    }
    if (status != MSC_OK) {
        return msc_status_prefix(status == MSC_E_FORMAT ? MSC_E_INVALID : status, "attribute %s",
                                 name);
    }
    (*out)->name = (char *)name;
    return MSC_OK;
}

// ---- Graphs -----------------------------------------------------------------------------------

struct scope {
    const Onnx__GraphProto *graph;
    const struct scope *around; // NULL: the graph is in the attribute itself
};

// Calls `visit` with the values that a graph defines, until it returns another status than MSC_OK.
static enum msc_status visit_defined(enum msc_status (*visit)(void *payload, const char *name),
                                     void *payload, const Onnx__GraphProto *g) {
    for (size_t i = 0; i < g->n_input; i++) {
        MSC_TRY(g->input[i]->name == NULL ? MSC_OK : visit(payload, g->input[i]->name));
    }
    for (size_t i = 0; i < g->n_initializer; i++) {
        MSC_TRY(g->initializer[i]->name == NULL ? MSC_OK : visit(payload, g->initializer[i]->name));
    }
    for (size_t i = 0; i < g->n_node; i++) {
        for (size_t k = 0; k < g->node[i]->n_output; k++) {
            MSC_TRY(visit(payload, g->node[i]->output[k]));
        }
    }
    return MSC_OK;
}

// A status that is no error: the name is found, so the visit ends.
static enum msc_status is_name(void *payload, const char *name) {
    return strcmp(payload, name) == 0 ? MSC_E_STATE : MSC_OK;
}

static bool defines(const Onnx__GraphProto *g, char *name) {
    return visit_defined(is_name, name, g) != MSC_OK;
}

static bool is_defined(const struct scope *scope, char *name) {
    bool is = false;
    for (const struct scope *s = scope; !is && s != NULL; s = s->around) {
        is = defines(s->graph, name);
    }
    return is;
}

static enum msc_status visit_name(const struct msc_onnx_graph_visit *v, const struct scope *scope,
                                  char **name) {
    if (*name == NULL || (*name)[0] == '\0' || v->visit == NULL || is_defined(scope, *name)) {
        return MSC_OK;
    }
    MSC_TRY(v->visit(v->payload, name));
    return !is_defined(scope, *name)
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "a graph in an attribute reads the model's '%s', and defines another "
                          "value of this name; give the model's value another alias",
                          *name);
}

#define MOST_DEPTH 32

static enum msc_status visit_attribute(const struct msc_onnx_graph_visit *v,
                                       const Onnx__AttributeProto *a, const struct scope *around,
                                       int depth);

// The elements must be in the attribute, because it is written to files in other folders.
static enum msc_status check_tensor(const Onnx__TensorProto *t) {
    return t->n_external_data == 0
               ? MSC_OK
               : MSC_FAIL(
                     MSC_E_UNSUPPORTED,
                     "tensor '%s' of an external operator's attribute is in a file of its own; "
                     "store the model in one file",
                     t->name == NULL ? "" : t->name);
}

static enum msc_status visit_graph(const struct msc_onnx_graph_visit *v, Onnx__GraphProto *g,
                                   const struct scope *around, int depth) {
    const struct scope scope = {g, around};
    if (depth > MOST_DEPTH) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "graphs are nested more than %d levels deep",
                        MOST_DEPTH);
    }
    for (size_t i = 0; i < g->n_initializer; i++) {
        MSC_TRY(check_tensor(g->initializer[i]));
    }
    MSC_TRY(v->visit_own == NULL ? MSC_OK : visit_defined(v->visit_own, v->payload, g));
    for (size_t i = 0; i < g->n_node; i++) {
        Onnx__NodeProto *node = g->node[i];
        if (v->visit_node != NULL) {
            MSC_TRY(v->visit_node(v->payload, node));
        }
        for (size_t k = 0; k < node->n_input; k++) {
            MSC_TRY(visit_name(v, &scope, &node->input[k]));
        }
        for (size_t k = 0; k < node->n_attribute; k++) {
            MSC_TRY(visit_attribute(v, node->attribute[k], &scope, depth + 1));
        }
    }
    for (size_t i = 0; i < g->n_output; i++) {
        MSC_TRY(visit_name(v, &scope, &g->output[i]->name));
    }
    return MSC_OK;
}

static enum msc_status visit_attribute(const struct msc_onnx_graph_visit *v,
                                       const Onnx__AttributeProto *a, const struct scope *around,
                                       int depth) {
    if (a->t != NULL) {
        MSC_TRY(check_tensor(a->t));
    }
    for (size_t i = 0; i < a->n_tensors; i++) {
        MSC_TRY(check_tensor(a->tensors[i]));
    }
    if (a->g != NULL) {
        MSC_TRY(visit_graph(v, a->g, around, depth));
    }
    for (size_t i = 0; i < a->n_graphs; i++) {
        MSC_TRY(visit_graph(v, a->graphs[i], around, depth));
    }
    return MSC_OK;
}

enum msc_status msc_onnx__visit_graphs(const struct msc_onnx_graph_visit *v,
                                       Onnx__AttributeProto *a) {
    return visit_attribute(v, a, NULL, 0);
}
