#include "kernels/lowering/families.h"

#include "kernels/lowering/families_internal.h"

static bool family_accepts_all(const struct msc_graph *g, const struct msc_joint *joint) {
    (void)g;
    (void)joint;
    return true;
}

static const struct msc_family_def reference = {.name = "reference", .accepts = family_accepts_all};

static const struct msc_family_def *const defs[] = {
    [MSC_FAMILY_REFERENCE] = &reference,
    [MSC_FAMILY_EWISE] = &msc_family__ewise,
    [MSC_FAMILY_CONV] = &msc_family__conv,
    [MSC_FAMILY_LINEAR] = &msc_family__linear,
    [MSC_FAMILY_INTEGER] = &msc_family__integer,
    [MSC_FAMILY_MATMUL] = &msc_family__matmul,
    [MSC_FAMILY_POOL] = &msc_family__pool,
    [MSC_FAMILY_REDUCE] = &msc_family__reduce,
    [MSC_FAMILY_SOFTMAX] = &msc_family__softmax,
    [MSC_FAMILY_LAYER_NORM] = &msc_family__layer_norm,
    [MSC_FAMILY_GROUP_NORM] = &msc_family__group_norm,
    [MSC_FAMILY_RESIZE] = &msc_family__resize,
    [MSC_FAMILY_LINEAR_QUANT] = &msc_family__linear_quant,
    [MSC_FAMILY_RENAME] = &msc_family__rename,
    [MSC_FAMILY_PERMUTE] = &msc_family__permute,
    [MSC_FAMILY_DEPTH_SPACE] = &msc_family__depth_space,
    [MSC_FAMILY_CONCAT] = &msc_family__concat,
    [MSC_FAMILY_SPLIT] = &msc_family__split,
    [MSC_FAMILY_SLICE] = &msc_family__slice,
    [MSC_FAMILY_PAD] = &msc_family__pad,
};
_Static_assert(sizeof(defs) / sizeof(defs[0]) == MSC_FAMILY_COUNT, "a family without definition");

// The family of each operator. A joint belongs to this family if the family accepts the joint.
static const enum msc_family families[MSC_OP_COUNT] = {
    [MSC_OP_CONV1D] = MSC_FAMILY_CONV,
    [MSC_OP_CONV2D] = MSC_FAMILY_CONV,
    [MSC_OP_CONV3D] = MSC_FAMILY_CONV,
    [MSC_OP_CONV1D_BIAS] = MSC_FAMILY_CONV,
    [MSC_OP_CONV2D_BIAS] = MSC_FAMILY_CONV,
    [MSC_OP_CONV3D_BIAS] = MSC_FAMILY_CONV,
    [MSC_OP_CONV1D_TRANSPOSE] = MSC_FAMILY_CONV,
    [MSC_OP_CONV2D_TRANSPOSE] = MSC_FAMILY_CONV,
    [MSC_OP_CONV3D_TRANSPOSE] = MSC_FAMILY_CONV,
    [MSC_OP_LINEAR] = MSC_FAMILY_LINEAR,
    [MSC_OP_LINEAR_BIAS] = MSC_FAMILY_LINEAR,
    [MSC_OP_MATMUL] = MSC_FAMILY_MATMUL,
    [MSC_OP_QLINEAR_CONV] = MSC_FAMILY_INTEGER,
    [MSC_OP_QLINEAR_MATMUL] = MSC_FAMILY_INTEGER,
    [MSC_OP_CONV_INTEGER] = MSC_FAMILY_INTEGER,
    [MSC_OP_MATMUL_INTEGER] = MSC_FAMILY_INTEGER,
    [MSC_OP_QUANTIZE] = MSC_FAMILY_LINEAR_QUANT,
    [MSC_OP_DEQUANTIZE] = MSC_FAMILY_LINEAR_QUANT,
    [MSC_OP_DYNAMIC_QUANTIZE] = MSC_FAMILY_LINEAR_QUANT,
    [MSC_OP_MAX_POOL1D] = MSC_FAMILY_POOL,
    [MSC_OP_AVG_POOL1D] = MSC_FAMILY_POOL,
    [MSC_OP_MAX_POOL2D] = MSC_FAMILY_POOL,
    [MSC_OP_AVG_POOL2D] = MSC_FAMILY_POOL,
    [MSC_OP_MAX_POOL3D] = MSC_FAMILY_POOL,
    [MSC_OP_AVG_POOL3D] = MSC_FAMILY_POOL,
    [MSC_OP_GLOBAL_AVG_POOL] = MSC_FAMILY_REDUCE,
    [MSC_OP_GLOBAL_MAX_POOL] = MSC_FAMILY_REDUCE,
    [MSC_OP_RESIZE] = MSC_FAMILY_RESIZE,
    [MSC_OP_SOFTMAX] = MSC_FAMILY_SOFTMAX,
    [MSC_OP_LOG_SOFTMAX] = MSC_FAMILY_SOFTMAX,
    [MSC_OP_INSTANCE_NORM] = MSC_FAMILY_GROUP_NORM,
    [MSC_OP_GROUP_NORM] = MSC_FAMILY_GROUP_NORM,
    [MSC_OP_LAYER_NORM] = MSC_FAMILY_LAYER_NORM,
    [MSC_OP_IDENTITY] = MSC_FAMILY_RENAME,
    [MSC_OP_MEAN] = MSC_FAMILY_REDUCE,
    [MSC_OP_SUM] = MSC_FAMILY_REDUCE,
    [MSC_OP_MAX] = MSC_FAMILY_REDUCE,
    [MSC_OP_MIN] = MSC_FAMILY_REDUCE,
    [MSC_OP_RESHAPE] = MSC_FAMILY_RENAME,
    [MSC_OP_FLATTEN] = MSC_FAMILY_RENAME,
    [MSC_OP_PERMUTE_DIMS] = MSC_FAMILY_PERMUTE,
    [MSC_OP_EXPAND_DIMS] = MSC_FAMILY_RENAME,
    [MSC_OP_SQUEEZE] = MSC_FAMILY_RENAME,
    [MSC_OP_DEPTH_TO_SPACE] = MSC_FAMILY_DEPTH_SPACE,
    [MSC_OP_SPACE_TO_DEPTH] = MSC_FAMILY_DEPTH_SPACE,
    [MSC_OP_CONCAT] = MSC_FAMILY_CONCAT,
    [MSC_OP_SPLIT] = MSC_FAMILY_SPLIT,
    [MSC_OP_STRIDED_SLICE] = MSC_FAMILY_SLICE,
    [MSC_OP_PAD] = MSC_FAMILY_PAD,
#define EWISE_OP(op, emit, instr, key0, key1) [MSC_OP_##op] = MSC_FAMILY_EWISE,
#define EWISE_COMPOSED EWISE_OP
#include "kernels/lowering/ewise.def"
};

enum msc_family msc_family_of(const struct msc_graph *g, const struct msc_joint *joint) {
    enum msc_family family = families[joint->op];
    return defs[family]->accepts(g, joint) ? family : MSC_FAMILY_REFERENCE;
}

enum msc_family msc_family_of_step(const struct msc_graph *g, const struct msc_step *step) {
    return step->kind == MSC_STEP_REORDER ? MSC_FAMILY_PERMUTE
                                          : msc_family_of(g, step->joints[0].joint);
}

const char *msc_family_name(enum msc_family family) {
    return defs[family]->name;
}

bool msc_family_fuses(const struct msc_backend *b, const struct msc_graph *g,
                      const struct msc_joint *anchor, const struct msc_joint *joint) {
    (void)b;
    return defs[msc_family_of(g, anchor)]->has_followers &&
           msc_family_of(g, joint) == MSC_FAMILY_EWISE;
}

void msc_family_layouts(const struct msc_backend *b, const struct msc_graph *g,
                        const struct msc_step *step, const enum msc_layout coming[],
                        struct msc_step_layouts *out) {
    (void)b;
    for (int32_t i = 0; i < step->n_inputs; i++) {
        out->inputs[i] = MSC_LAYOUT_NCHW;
    }
    out->outputs = MSC_LAYOUT_NCHW;
    out->is_alias = false;
    const struct msc_family_def *def = defs[msc_family_of(g, step->joints[0].joint)];
    if (def->layouts) {
        def->layouts(g, step, coming, out);
    }
}
