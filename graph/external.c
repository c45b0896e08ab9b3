#include "graph/external_internal.h"

#include "base/str.h"
#include "graph/graph_internal.h"
#include "graph/operators_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void msc_external_write_name(struct msc_str *out, const struct msc_joint *j) {
    const char *domain = msc_joint_attr(j, "domain"), *op = msc_joint_attr(j, "op");
    if (domain != NULL && domain[0] != '\0') {
        msc_str_printf(out, "%s::", domain);
    }
    msc_str_append(out, op == NULL ? "" : op);
}

int32_t msc_external_n_inputs(const struct msc_joint *j) {
    const char *captures = msc_joint_attr(j, "captures");
    int32_t n = 0;
    for (const char *c = captures == NULL ? "" : captures; *c != '\0'; c++) {
        n += c == captures || c[-1] == ',';
    }
    return j->n_operands > n ? j->n_operands - n : 0;
}

// ---- Joints without a plug-in -----------------------------------------------------------------

static const struct msc_joint *find_uncomputed(const struct msc_graph *g, int32_t *outermost) {
    for (int32_t i = 0; i < msc_graph_n_joints(g); i++) {
        const struct msc_joint *j = msc_graph_joint(g, i), *inner = NULL;
        int32_t unused;
        if (j->op == MSC_OP_EXTERNAL && j->n_graphs == 0 &&
            msc_operators__find_joint(g->operators, j) == NULL) {
            inner = j;
        }
        for (int32_t k = 0; inner == NULL && k < j->n_graphs; k++) {
            inner = find_uncomputed(j->graphs[k], &unused);
        }
        if (inner != NULL) {
            *outermost = i;
            return inner;
        }
    }
    return NULL;
}

int32_t msc_graph_find_uncomputed(const struct msc_graph *g) {
    int32_t joint;
    return find_uncomputed(g, &joint) == NULL ? MSC_NO_ID : joint;
}

enum msc_status msc_graph_require_computed(const struct msc_graph *g) {
    int32_t joint;
    const struct msc_joint *j = find_uncomputed(g, &joint);
    return j == NULL ? MSC_OK : msc_operators__fail_absent(j);
}

// ---- Signatures -------------------------------------------------------------------------------

static const char *skip_separators(const char *text) {
    return text + strspn(text, ", ");
}

static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || strchr("_.:/+*-()", c) != NULL;
}

void msc_external__clean_name(char out[MSC_EXTERNAL_NAME_BYTES], const char *name) {
    size_t n = 0;
    // A name that begins with a digit would be read as a number.
    if (isdigit((unsigned char)name[0]) || name[0] == '-' || name[0] == '\0') {
        out[n++] = '_';
    }
    for (; *name != '\0' && n + 1 < MSC_EXTERNAL_NAME_BYTES; name++) {
        out[n++] = is_name_char(*name) ? *name : '_';
    }
    out[n] = '\0';
}

static bool read_dim(struct msc_external_type *out, const char *text, size_t length) {
    char *name = out->names[out->n_dims];
    if (length == 0 || length >= MSC_EXTERNAL_NAME_BYTES || out->n_dims == MSC_MAX_DIMS) {
        return false;
    }
    memcpy(name, text, length);
    name[length] = '\0';
    for (size_t i = 0; i < length; i++) {
        if (!is_name_char(name[i])) {
            return false;
        }
    }
    int64_t *dim = &out->dims[out->n_dims++];
    *dim = -1;
    if (isdigit((unsigned char)name[0])) {
        bool is_number = msc_parse_i64(dim, name);
        name[0] = '\0';
        return is_number;
    }
    return name[0] != '-';
}

static bool read_dims(struct msc_external_type *out, const char **text) {
    const char *c = *text;
    if (*c++ != '[') {
        return false;
    }
    while (*c != ']') {
        size_t length = strcspn(c, ",]");
        if (!read_dim(out, c, length)) {
            return false;
        }
        c += length + (c[length] == ',');
    }
    *text = c + 1;
    return true;
}

bool msc_external__next_type(struct msc_external_type *out, const char **text, bool *is_valid) {
    const char *c = skip_separators(*text);
    char word[32];
    memset(out, 0, sizeof(*out));
    out->dtype = MSC_DTYPE_NONE;
    *is_valid = true;
    if (*c == '\0' || strncmp(c, "->", 2) == 0) {
        *text = *c == '\0' ? c : c + 2;
        return false;
    }
    if (*c == '-') {
        *text = c + 1;
        return true;
    }
    size_t length = strcspn(c, "[");
    *is_valid = length < sizeof(word);
    if (*is_valid) {
        memcpy(word, c, length);
        word[length] = '\0';
        out->dtype = msc_dtype_find(word);
        *text = c + length;
        *is_valid = out->dtype != MSC_DTYPE_NONE && read_dims(out, text);
    }
    return *is_valid;
}

void msc_external__write_type(struct msc_str *out, const struct msc_external_type *type) {
    if (type->dtype == MSC_DTYPE_NONE) {
        msc_str_char(out, '-');
        return;
    }
    msc_str_printf(out, "%s[", msc_dtype_name(type->dtype));
    for (int i = 0; i < type->n_dims; i++) {
        msc_str_append(out, i > 0 ? "," : "");
        if (type->dims[i] < 0) {
            msc_str_append(out, type->names[i]);
        } else {
            msc_str_i64(out, type->dims[i]);
        }
    }
    msc_str_char(out, ']');
}

void msc_external__type_of(struct msc_external_type *out, const struct msc_graph *g,
                           enum msc_dtype dtype, int n_dims, const struct msc_dim dims[]) {
    *out = (struct msc_external_type){.dtype = dtype, .n_dims = n_dims};
    for (int i = 0; i < n_dims; i++) {
        out->dims[i] = dims[i].value;
        if (dims[i].prim != MSC_NO_ID) {
            out->dims[i] = -1;
            msc_external__clean_name(out->names[i], g->prims[dims[i].prim]->name);
        }
    }
}
