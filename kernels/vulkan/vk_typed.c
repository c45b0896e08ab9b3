// Element-wise operators over any type: comparisons, logic, selection, casts, integers, half
// floats, and float32 functions for which element-wise programs have no instruction.
#include "kernels/lowering/ewise.h"
#include "kernels/lowering/lowering.h"
#include "kernels/vulkan/vk_joint.h"

#include <math.h>
#include <string.h>

// Codes of operators: first the instructions of ewise.def, then the operators of typed.def.
enum {
#define TYPED(code, name, op, operands) name = (code),
#define TYPED_REAL(code, name, op, operands, expression) name = (code),
#define TYPED_ACTIVATION(code, name, op, key0, key1, expression) name = (code),
#define TYPED_VARIANT(code, name, expression) name = (code),
#include "kernels/vulkan/shaders/typed.def"
};
_Static_assert((int)MSC_EWISE_OP_COUNT <= ELU, "ewise.def: a code is also used by typed.def");
_Static_assert(MSC_EWISE_ADD == 0 && MSC_EWISE_SUBTRACT == 1 && MSC_EWISE_MULTIPLY == 2 &&
                   MSC_EWISE_DIVIDE == 3 && MSC_EWISE_MAXIMUM == 4 && MSC_EWISE_MINIMUM == 5 &&
                   MSC_EWISE_POWER == 6 && MSC_EWISE_RELU == 8 && MSC_EWISE_CLIP == 10 &&
                   MSC_EWISE_ABS == 20 && MSC_EWISE_NEGATIVE == 21 && MSC_EWISE_FLOOR == 23 &&
                   MSC_EWISE_CEIL == 24 && MSC_EWISE_ROUND == 25 && MSC_EWISE_ELU_TAIL == 26 &&
                   MSC_EWISE_GELU_TAIL == 27 && MSC_EWISE_TANH_ARGUMENT == 28,
               "ewise.def: typed.def and typed_ops.glsl use other codes");

// The number of operands that typed_ops.glsl assumes.
#define N_OPERANDS(code)                                                                           \
    ((code) == WHERE ? 3                                                                           \
     : (code) <= MSC_EWISE_POWER || ((code) >= PRELU && (code) <= SHIFT_RIGHT) ||                  \
             ((code) >= EQUAL && (code) <= LESS_EQUAL)                                             \
         ? 2                                                                                       \
         : 1)
enum {
#define EWISE(code, name, operands, expression) OPERANDS_##name = (operands),
#define EWISE_LOOP(code, name, operands, loop, expression) OPERANDS_##name = (operands),
#include "kernels/lowering/ewise.def"
};
#define EWISE_OP(op, emit, instr, key0, key1)                                                      \
    _Static_assert(N_OPERANDS((int)MSC_EWISE_##instr) == OPERANDS_##instr,                         \
                   "ewise.def: typed_ops.glsl counts the operands of " #op " differently");
#include "kernels/lowering/ewise.def"
#define TYPED(code, name, op, operands)                                                            \
    _Static_assert(N_OPERANDS(code) == (operands),                                                 \
                   "typed.def: typed_ops.glsl counts the operands of " #op " differently");
#define TYPED_REAL(code, name, op, operands, expression) TYPED(code, name, op, operands)
#define TYPED_ACTIVATION(code, name, op, key0, key1, expression) TYPED(code, name, op, 1)
#include "kernels/vulkan/shaders/typed.def"

static const struct {
    uint8_t code;        // the code plus 1; 0: the operator is not supported
    const char *keys[2]; // attributes that give the parameters p and q
} ops[MSC_OP_COUNT] = {
#define EWISE_OP(op, emit, instr, key0, key1) [MSC_OP_##op] = {MSC_EWISE_##instr + 1, {key0, key1}},
#include "kernels/lowering/ewise.def"
#define TYPED(code, name, op, operands) [MSC_OP_##op] = {name + 1, {0}},
#define TYPED_REAL(code, name, op, operands, expression) [MSC_OP_##op] = {name + 1, {0}},
#define TYPED_ACTIVATION(code, name, op, key0, key1, expression)                                   \
    [MSC_OP_##op] = {name + 1, {key0, key1}},
#include "kernels/vulkan/shaders/typed.def"
    [MSC_OP_IDENTITY] = {CAST + 1, {0}}, [MSC_OP_RESHAPE] = {CAST + 1, {0}},
    [MSC_OP_FLATTEN] = {CAST + 1, {0}},  [MSC_OP_EXPAND_DIMS] = {CAST + 1, {0}},
    [MSC_OP_SQUEEZE] = {CAST + 1, {0}},
};

// True if the operator supports integers.
static bool is_for_integers(enum msc_op op) {
    uint32_t code = ops[op].code - 1u;
    bool rounds = code >= MSC_EWISE_ABS && code <= MSC_EWISE_ROUND && code != MSC_EWISE_RECIPROCAL;
    return code <= MSC_EWISE_POWER || code == MSC_EWISE_RELU || code == MSC_EWISE_CLIP || rounds ||
           (code >= PRELU && code <= LESS_EQUAL) || code == SIGN;
}

// ---- Parameters -------------------------------------------------------------------------------

struct parameters {
    float p, q;
    int64_t low, high;
    bool is_computed[2]; // [low, high] true: the limit is read at run time
};

// Reads one limit of a clip. The limit may be an attribute, a constant or absent. False if it is
// computed at run time.
static bool read_limit(float *real, int64_t *integer, const struct msc_vk_joint_desc *d,
                       const char *key) {
    int position = msc_joint_operand(d->joint, key);
    if (msc_joint_attr_float(d->joint, key, real)) {
        *integer = *real > -9.2e18f && *real < 9.2e18f ? (int64_t)*real : *integer;
        return true;
    }
    const struct msc_array *a =
        position >= 0 ? msc_lowering_constant(d->plan->graph, d->joint, position) : NULL;
    if (a) {
        *real = (float)msc_array_get_double(a, 0);
        *integer = msc_dtype_is_float(msc_array_dtype(a)) ? *integer : msc_array_get_i64(a, 0);
    }
    return a || position < 0 || position >= d->n_x || d->x[position].dtype == MSC_DTYPE_NONE;
}

static bool read_parameters(struct parameters *out, const struct msc_vk_joint_desc *d) {
    *out = (struct parameters){.p = -INFINITY, .q = INFINITY, .low = INT64_MIN, .high = INT64_MAX};
    enum msc_op op = d->joint->op;
    float *numbers[2] = {&out->p, &out->q};
    bool flag;
    for (int i = 0; i < 2; i++) {
        const char *key = ops[op].keys[i];
        if (key && !msc_joint_attr_float(d->joint, key, numbers[i])) {
            return false;
        }
    }
    if (op == MSC_OP_ISINF) {
        out->p = msc_joint_attr_bool(d->joint, "detect_negative", &flag) && flag;
        out->q = msc_joint_attr_bool(d->joint, "detect_positive", &flag) && flag;
    }
    if (op == MSC_OP_CLIP) {
        out->is_computed[0] = !read_limit(&out->p, &out->low, d, "min");
        out->is_computed[1] = !read_limit(&out->q, &out->high, d, "max");
    }
    return true;
}

// ---- Operands ---------------------------------------------------------------------------------

static int count_operands(enum msc_op op) {
    uint32_t code = ops[op].code - 1u;
    return N_OPERANDS(code);
}

// True if the divisor is constant and without zeros. Dividing an integer by zero is an error.
static bool divides_safely(const struct msc_vk_joint_desc *d) {
    const struct msc_array *a = msc_lowering_constant(d->plan->graph, d->joint, 1);
    for (int64_t i = 0; a && i < msc_array_n_elements(a); i++) {
        if (msc_array_get_i64(a, i) == 0) {
            return false;
        }
    }
    return a != NULL;
}

static bool vk_typed_is_possible(const struct msc_vk_backend *b, const struct msc_vk_joint_desc *d,
                                 bool takes_floats) {
    enum msc_op op = d->joint->op;
    uint32_t code = ops[op].code - 1u;
    int n = count_operands(op);
    bool divides = code == MSC_EWISE_DIVIDE || code == MOD || code == FLOOR_MOD;
    if (ops[op].code == 0 || !msc_vk_joint_has_elements(b, d) || d->n_y != 1 ||
        (op != MSC_OP_CLIP && n > d->n_x) || (n == 2 && d->n_x > 2)) {
        return false;
    }
    if (code == WHERE || code == CAST || op == MSC_OP_ISNAN || op == MSC_OP_ISINF) {
        return true;
    }
    if (takes_floats) {
        return msc_vk_is_real(d->x[0].dtype);
    }
    return is_for_integers(op) && (!divides || divides_safely(d)) &&
           (n < 2 || !msc_dtype_is_float(d->x[1].dtype));
}

// Sets how each operand is read; writes its strides after the lengths.
static enum msc_status set_places(struct msc_vk_stage *s, struct msc_vk_backend *b,
                                  const struct msc_vk_joint_desc *d, uint32_t modes[3]) {
    int32_t dims[4 * MSC_MAX_DIMS + 4] = {1};
    const struct msc_view *y = &d->y[0];
    for (int i = 0; i < y->n_dims; i++) {
        dims[i] = (int32_t)y->dims[i];
    }
    for (int i = 0; i < count_operands(d->joint->op); i++) {
        int64_t n = msc_view_n_elements(&d->x[i]);
        modes[i] = n == (int64_t)s->n ? 0 : n == 1 ? 2 : 1;
        msc_vk_broadcast_strides(&dims[y->n_dims * (i + 1)], &d->x[i], y->n_dims);
    }
    return msc_vk_joint_numbers(s, b, dims, sizeof(dims));
}

// If a limit of a clip is an operand, adds it to the stage's operands, after the clipped operand.
static void set_limits(struct msc_vk_stage *s, const struct msc_vk_joint_desc *d,
                       const struct parameters *p, uint32_t modes[3], uint32_t types[3]) {
    static const char *const keys[2] = {"min", "max"};
    for (int i = 0; i < 2; i++) {
        if (p->is_computed[i]) {
            s->in[1 + i] = msc_joint_operand(d->joint, keys[i]);
            modes[1 + i] = 2;
            types[1 + i] = msc_vk_element(d->x[s->in[1 + i]].dtype);
        }
    }
}

static enum msc_status vk_typed_init(struct msc_vk_joint *k, struct msc_vk_backend *b,
                                     const struct msc_vk_joint_desc *d) {
    struct parameters p;
    enum msc_op op = d->joint->op;
    uint32_t code = ops[op].code - 1u, modes[3] = {0};
    bool takes_floats = msc_vk_is_real(d->x[0].dtype);
    bool is_tanh_gelu = op == MSC_OP_GELU && msc_joint_attr(d->joint, "approximate") &&
                        msc_joint_attr(d->joint, "approximate")[0] == 't';
    if (!vk_typed_is_possible(b, d, takes_floats) || !read_parameters(&p, d)) {
        return msc_vk_joint_refuse(d);
    }
    struct msc_vk_stage *s = msc_vk_joint_stage(k, (uint64_t)msc_view_n_elements(&d->y[0]), 3);
    MSC_TRY(set_places(s, b, d, modes));
    memcpy(&s->push[0], &p.p, sizeof(p.p));
    memcpy(&s->push[1], &p.q, sizeof(p.q));
    memcpy(&s->push[2], &p.low, sizeof(p.low));
    memcpy(&s->push[4], &p.high, sizeof(p.high));
    s->n_push = 6;
    uint32_t types[3] = {0};
    for (int i = 0; i < 3 && i < count_operands(op); i++) {
        types[i] = msc_vk_element(d->x[i].dtype);
    }
    set_limits(s, d, &p, modes, types);
    int n_dims = d->y[0].n_dims;
    const uint32_t constants[] = {b->vk->tuning.lanes,
                                  !b->vk->divides_exactly,
                                  is_tanh_gelu ? GELU_TANH : code,
                                  takes_floats,
                                  types[0],
                                  types[1],
                                  types[2],
                                  msc_vk_element(d->y[0].dtype),
                                  (uint32_t)n_dims,
                                  modes[0],
                                  modes[1],
                                  modes[2]};
    MSC_VK_CHECK_CONSTANTS(MSC_VK_TYPED, constants);
    return msc_vk_pipeline(&s->pipeline, b->vk, MSC_VK_TYPED, constants);
}

const struct msc_vk_family msc_vk_typed = {
    .name = "typed element-wise", .init = vk_typed_init, MSC_VK_JOINT_FUNCTIONS};
