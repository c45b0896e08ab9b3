#include "model/gguf_export.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/gguf.h"
#include "graph/edit.h"
#include "tools/strategy.h"

#include <ctype.h>
#include <string.h>

#define VERSION 3
#define U32 4 // type of a value

// A tensor as it is written.
struct written {
    const struct msc_gguf_tensor *from;
    const struct msc_quant *quant; // NULL: the tensor is copied
    int type;
    uint64_t n_bytes, offset;
};

struct exporting {
    const struct msc_gguf_export *e;
    struct msc_gguf *file;
    struct msc_sites sites;
    const struct msc_edit **edits;
    struct written *tensors;
    size_t n;
    struct msc_file_writer writer;
    struct msc_arena arena;
};

// Numbers of llama.cpp for files with mostly one type.
static uint32_t file_type_of(int type) {
    static const struct {
        int type;
        uint32_t file_type;
    } rows[] = {{MSC_GGUF_F32, 0},   {MSC_GGUF_F16, 1},   {MSC_GGUF_Q4_0, 2},  {MSC_GGUF_Q4_1, 3},
                {MSC_GGUF_Q8_0, 7},  {MSC_GGUF_Q5_0, 8},  {MSC_GGUF_Q5_1, 9},  {MSC_GGUF_Q2_K, 10},
                {MSC_GGUF_Q3_K, 12}, {MSC_GGUF_Q4_K, 15}, {MSC_GGUF_Q5_K, 17}, {MSC_GGUF_Q6_K, 18},
                {MSC_GGUF_BF16, 32}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].type == type) {
            return rows[i].file_type;
        }
    }
    return 0;
}

// ---- The plan ---------------------------------------------------------------------------------

static enum msc_status fail_edit(const char *name, const char *what) {
    return MSC_FAIL(MSC_E_UNSUPPORTED,
                    "tensor %s: GGUF does not store %s; search with types of GGUF, such as "
                    "{\"type\": \"q4_k\"}, and float activations",
                    name, what);
}

static enum msc_status take_edit(struct exporting *x, const struct msc_slot *slot,
                                 const struct msc_edit *edit) {
    const char *name = msc_graph_tensor(x->e->graph, slot->tensor)->name;
    struct written *w = NULL;
    for (size_t i = 0; i < x->n && !w; i++) {
        w = strcmp(x->tensors[i].from->name, name) == 0 ? &x->tensors[i] : NULL;
    }
    if (slot->kind != MSC_SITE_WEIGHT || !w) {
        return fail_edit(name, "quantised activations");
    }
    if (edit->kind != MSC_EDIT_QUANTIZE ||
        (!edit->quant.blocks && edit->quant.type == MSC_DTYPE_NONE)) {
        return fail_edit(name, "these integers");
    }
    if (edit->quant.blocks && edit->quant.axis != w->from->n_dims - 1) {
        return fail_edit(name, "blocks along another axis than the last");
    }
    w->quant = &edit->quant;
    w->type = edit->quant.blocks                   ? (int)edit->quant.blocks->type
              : edit->quant.type == MSC_DTYPE_BF16 ? MSC_GGUF_BF16
                                                   : MSC_GGUF_F16;
    return MSC_OK;
}

static enum msc_status list_tensors(struct exporting *x) {
    x->n = msc_gguf_n_tensors(x->file);
    x->tensors = msc_arena_array(&x->arena, x->n + 1, sizeof(x->tensors[0]));
    MSC_TRY(MSC_ALLOCATED(x->tensors));
    for (size_t i = 0; i < x->n; i++) {
        const struct msc_gguf_tensor *t = msc_gguf_tensor(x->file, i);
        x->tensors[i] = (struct written){.from = t, .type = t->type};
    }
    for (int32_t i = 0; i < x->sites.n_slots; i++) {
        if (x->edits[i]) {
            MSC_TRY(take_edit(x, &x->sites.slots[i], x->edits[i]));
        }
    }
    uint64_t at = 0, alignment = msc_gguf_alignment(x->file);
    for (size_t i = 0; i < x->n; i++) {
        struct written *w = &x->tensors[i];
        int64_t n = msc_dims_product(w->from->n_dims, w->from->dims);
        int64_t row_length = w->from->n_dims > 0 ? w->from->dims[w->from->n_dims - 1] : 1;
        w->n_bytes = msc_gguf_n_bytes(w->type, n, row_length);
        w->offset = at;
        at = (at + w->n_bytes + alignment - 1) / alignment * alignment;
    }
    return MSC_OK;
}

static enum msc_status apply_strategy(struct exporting *x) {
    const struct msc_strategy *s = x->e->strategy;
    struct msc_site_scheme scheme = {0};
    if (s) {
        scheme = msc_strategy_scheme(s);
    }
    if (s && msc_strategy_prunes(s)) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "a plan that changes or removes weights cannot be written as GGUF; write "
                        "it as ONNX");
    }
    MSC_TRY(msc_sites_find(&x->sites, x->e->graph, &scheme));
    x->edits = msc_arena_array(&x->arena, (size_t)x->sites.n_slots + 1, sizeof(x->edits[0]));
    MSC_TRY(MSC_ALLOCATED(x->edits));
    return s ? msc_strategy_apply(s, x->e->graph, &x->sites, x->edits) : MSC_OK;
}

// ---- The file ---------------------------------------------------------------------------------

static enum msc_status put(struct exporting *x, const void *data, size_t n_bytes) {
    return n_bytes > 0 ? msc_file_writer_write(&x->writer, data, n_bytes) : MSC_OK;
}

static enum msc_status put_number(struct exporting *x, uint64_t value, int n_bytes) {
    uint8_t bytes[8];
    for (int i = 0; i < n_bytes; i++) {
        bytes[i] = (uint8_t)(value >> (8 * i));
    }
    return put(x, bytes, (size_t)n_bytes);
}

static enum msc_status put_text(struct exporting *x, const char *text) {
    MSC_TRY(put_number(x, strlen(text), 8));
    return put(x, text, strlen(text));
}

static enum msc_status pad(struct exporting *x) {
    size_t alignment = msc_gguf_alignment(x->file);
    while (x->writer.n_bytes % alignment != 0) {
        MSC_TRY(put_number(x, 0, 1));
    }
    return MSC_OK;
}

// The type with the most bytes.
static int main_type(const struct exporting *x) {
    uint64_t most = 0;
    int type = MSC_GGUF_F32;
    for (size_t i = 0; i < x->n; i++) {
        uint64_t sum = 0;
        for (size_t k = 0; k < x->n; k++) {
            sum += x->tensors[k].type == x->tensors[i].type ? x->tensors[k].n_bytes : 0;
        }
        type = sum > most ? x->tensors[i].type : type;
        most = sum > most ? sum : most;
    }
    return type;
}

static enum msc_status put_value(struct exporting *x, const char *key, uint32_t value) {
    MSC_TRY(put_text(x, key));
    MSC_TRY(put_number(x, U32, 4));
    return put_number(x, value, 4);
}

// The values of the model, of which two are replaced.
static enum msc_status put_values(struct exporting *x) {
    static const char *const replaced[] = {"general.file_type", "general.quantization_version"};
    size_t n = msc_gguf_n_values(x->file), n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        const char *key = msc_gguf_value_key(x->file, i);
        n_kept += strcmp(key, replaced[0]) != 0 && strcmp(key, replaced[1]) != 0;
    }
    MSC_TRY(put_number(x, n_kept + 2, 8));
    for (size_t i = 0; i < n; i++) {
        const char *key = msc_gguf_value_key(x->file, i);
        size_t n_bytes;
        const uint8_t *bytes = msc_gguf_value_bytes(&n_bytes, x->file, i);
        if (strcmp(key, replaced[0]) != 0 && strcmp(key, replaced[1]) != 0) {
            MSC_TRY(put(x, bytes, n_bytes));
        }
    }
    MSC_TRY(put_value(x, replaced[0], file_type_of(main_type(x))));
    return put_value(x, replaced[1], 2);
}

static enum msc_status put_header(struct exporting *x) {
    MSC_TRY(put(x, "GGUF", 4));
    MSC_TRY(put_number(x, VERSION, 4));
    MSC_TRY(put_number(x, x->n, 8));
    MSC_TRY(put_values(x));
    for (size_t i = 0; i < x->n; i++) {
        const struct written *w = &x->tensors[i];
        MSC_TRY(put_text(x, w->from->name));
        MSC_TRY(put_number(x, (uint64_t)w->from->n_dims, 4));
        for (int k = w->from->n_dims - 1; k >= 0; k--) {
            MSC_TRY(put_number(x, (uint64_t)w->from->dims[k], 8));
        }
        MSC_TRY(put_number(x, (uint64_t)w->type, 4));
        MSC_TRY(put_number(x, w->offset, 8));
    }
    return pad(x);
}

// A weight of a 16-bit float type.
static enum msc_status put_halves(struct exporting *x, const struct written *w) {
    struct msc_array *floats, *rounded;
    MSC_TRY(msc_gguf_load(&floats, x->file, w->from));
    enum msc_status status = msc_fake_quantize_array(&rounded, floats, w->quant);
    msc_array_release(floats);
    MSC_TRY(status);
    const float *values = msc_array_data(rounded);
    for (int64_t i = 0; status == MSC_OK && i < msc_array_n_elements(rounded); i++) {
        uint16_t half =
            w->type == MSC_GGUF_F16 ? msc_f32_to_f16(values[i]) : msc_f32_to_bf16(values[i]);
        status = put_number(x, half, 2);
    }
    msc_array_release(rounded);
    return status;
}

static enum msc_status put_elements(struct exporting *x, const struct written *w) {
    if (!w->quant) {
        MSC_TRY(put(x, w->from->bytes, w->from->n_bytes));
    } else if (w->quant->blocks) {
        MSC_TRY(put(x, msc_array_data(w->quant->integers), msc_array_n_bytes(w->quant->integers)));
    } else {
        MSC_TRY(put_halves(x, w));
    }
    return pad(x);
}

static enum msc_status write_model(struct exporting *x) {
    MSC_TRY(msc_file_writer_begin(&x->writer, x->e->output));
    MSC_TRY(put_header(x));
    for (size_t i = 0; i < x->n; i++) {
        MSC_TRY(put_elements(x, &x->tensors[i]));
    }
    return msc_file_writer_commit(&x->writer);
}

// ---- The list ---------------------------------------------------------------------------------

static enum msc_status write_types(const struct exporting *x) {
    struct msc_str text = {0};
    char name[8];
    for (size_t i = 0; i < x->n; i++) {
        const struct written *w = &x->tensors[i];
        if (w->from->n_dims < 2) {
            continue;
        }
        msc_str_char(&text, '^');
        for (const char *c = w->from->name; *c; c++) {
            bool is_plain = isalnum((unsigned char)*c) || *c == '_' || *c == '-';
            msc_str_printf(&text, "%s%c", is_plain ? "" : "\\", *c);
        }
        msc_str_append(&text, "$=");
        for (const char *c = msc_gguf_type_name(name, w->type); *c; c++) {
            // llama.cpp writes "q4_K", and reads either case.
            msc_str_char(&text, (char)tolower((unsigned char)*c));
        }
        msc_str_char(&text, '\n');
    }
    enum msc_status status = msc_str_status(&text);
    if (status == MSC_OK) {
        status = msc_file_write(x->e->types, msc_str_text(&text), text.length);
    }
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_gguf_export(uint64_t *n_bytes, const struct msc_gguf_export *e) {
    struct exporting x = {.e = e};
    enum msc_status status = MSC_OK;
    *n_bytes = 0;
    MSC_TRY_OUT(msc_gguf_open(&x.file, e->model));
    MSC_TRY_OUT(apply_strategy(&x));
    MSC_TRY_OUT(list_tensors(&x));
    MSC_TRY_OUT(e->output ? write_model(&x) : MSC_OK);
    MSC_TRY_OUT(e->types ? write_types(&x) : MSC_OK);
    for (size_t i = 0; i < x.n; i++) {
        *n_bytes += x.tensors[i].n_bytes;
    }
out:
    msc_file_writer_abort(&x.writer);
    msc_sites_finish(&x.sites);
    msc_arena_finish(&x.arena);
    msc_gguf_close(x.file);
    return status;
}
