#include "graph/linear_quant.h"

#include <string.h>

static bool is_one(int n_dims, const int64_t dims[]) {
    return msc_dims_product(n_dims, dims) == 1;
}

static enum msc_status fail_shape(const struct msc_joint *joint, int n_dims, const int64_t dims[],
                                  int n_scale_dims, const int64_t scale_dims[]) {
    char text[MSC_DIMS_TEXT_BYTES], scale_text[MSC_DIMS_TEXT_BYTES];
    return MSC_FAIL(MSC_E_INVALID, "joint '%s' (%s): scales %s do not fit %s along axis %s",
                    joint->name, msc_op_info(joint->op)->name,
                    msc_dims_format(scale_text, n_scale_dims, scale_dims),
                    msc_dims_format(text, n_dims, dims), msc_joint_attr(joint, "axis"));
}

enum msc_status msc_linear_quant_init(struct msc_linear_quant *out, const struct msc_joint *joint,
                                      int n_dims, const int64_t dims[], int n_scale_dims,
                                      const int64_t scale_dims[]) {
    int64_t axis = 0, block = 0;
    *out = (struct msc_linear_quant){0};
    bool is_known =
        msc_joint_attr_i64(joint, "axis", &axis) && msc_joint_attr_i64(joint, "block_size", &block);
    axis += axis < 0 ? n_dims : 0;
    bool is_blocked = block > 0 && n_scale_dims == n_dims;
    if (!is_blocked && is_one(n_scale_dims, scale_dims)) {
        return MSC_OK;
    }
    if (!is_known || axis < 0 || axis >= n_dims || block < 0 || (block > 0 && !is_blocked)) {
        return fail_shape(joint, n_dims, dims, n_scale_dims, scale_dims);
    }
    out->length = dims[axis];
    out->inner = msc_dims_product(n_dims - (int)axis - 1, dims + axis + 1);
    block = block > dims[axis] && dims[axis] > 0 ? dims[axis]
                                                 : block; // a longer block covers the whole axis
    out->block = block;
    out->n_blocks = is_blocked ? dims[axis] / block + (dims[axis] % block != 0) : dims[axis];
    bool fits = is_blocked || n_scale_dims == 1;
    for (int i = 0; fits && i < n_scale_dims; i++) {
        int64_t expected = i == axis || !is_blocked ? out->n_blocks : dims[i];
        fits = scale_dims[i] == expected;
    }
    return fits ? MSC_OK : fail_shape(joint, n_dims, dims, n_scale_dims, scale_dims);
}

int64_t msc_linear_quant_run(const struct msc_linear_quant *m, int64_t i, int64_t n,
                             int64_t *scale) {
    if (m->length == 0) {
        *scale = 0;
        return n - i;
    }
    int64_t at = i / m->inner % m->length, behind = i % m->inner;
    if (m->block == 0) {
        *scale = at;
        return m->inner - behind;
    }
    int64_t outer = i / (m->inner * m->length);
    int64_t left = m->block - at % m->block;
    *scale = (outer * m->n_blocks + at / m->block) * m->inner + behind;
    return m->inner > 1 ? 1 : left < m->length - at ? left : m->length - at;
}

void msc_quant_format_init(struct msc_quant_format *out, const struct msc_joint *joint,
                           enum msc_dtype dtype) {
    const char *name = msc_joint_attr(joint, "format");
    bool is_signed = dtype == MSC_DTYPE_I8 || dtype == MSC_DTYPE_I16;
    bool has_4 = name && (strcmp(name, "int4") == 0 || strcmp(name, "uint4") == 0);
    bool has_2 = name && (strcmp(name, "int2") == 0 || strcmp(name, "uint2") == 0);
    int64_t width = has_4 ? 4 : has_2 ? 2 : 8 * (int64_t)msc_dtype_bytes(dtype);
    int64_t half = (int64_t)1 << (width - 1);
    *out = (struct msc_quant_format){
        .low = is_signed ? (float)-half : 0,
        .high = (float)(is_signed ? half - 1 : 2 * half - 1),
        .narrow = name ? msc_narrow_float_find(name) : NULL,
        .saturates = true,
    };
    msc_joint_attr_bool(joint, "saturate", &out->saturates);
}
