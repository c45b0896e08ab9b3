// Runs the reference kernels from grid to grid and checks the codes at the end of each section.
#include "model/grids.h"

#include "base/alloc.h"
#include "graph/linear_quant.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define CODES_FOR_A_STEP 100 // of this many codes made without a float, one may differ by a step

enum { X, SCALE, ZERO, N_OPERANDS };

// The operands that the reference kernels have read so far for a joint that quantises.
struct reader {
    const struct msc_grids *grids;
    struct msc_grids_run *run;
    struct msc_array *operands[N_OPERANDS]; // a counted reference to each
};

static const struct msc_array *found_of(const struct reader *r, int32_t tensor) {
    int32_t place = r->grids->places[tensor];
    return place == MSC_NO_ID ? NULL : r->run->found[place];
}

static void forget_operands(struct reader *r) {
    for (int i = 0; i < N_OPERANDS; i++) {
        msc_array_release(r->operands[i]);
        r->operands[i] = NULL;
    }
}

// ---- Codes made from floats -------------------------------------------------------------------

// Quantises x to the type of `like`, after moving each element by `sign` times the greatest
// difference that counts as close.
static enum msc_status quantise_moved(struct msc_array **out, const struct reader *r,
                                      const struct msc_joint *j, const struct msc_array *like,
                                      double sign) {
    struct msc_array *moved = NULL;
    struct msc_view operands[N_OPERANDS] = {{.dtype = MSC_DTYPE_NONE}};
    MSC_TRY(msc_outputs_move(&moved, r->operands[X], &r->run->limits, sign));
    enum msc_status status = msc_array_create(out, msc_array_dtype(like), msc_array_n_dims(moved),
                                              msc_array_dims(moved));
    if (status == MSC_OK) {
        operands[X] = msc_view_of_array(moved);
        for (int i = SCALE; i < N_OPERANDS && r->operands[i]; i++) {
            operands[i] = msc_view_of_array(r->operands[i]);
        }
        struct msc_view codes = msc_view_of_array(*out);
        const struct msc_reference_call call = {.graph = r->grids->d->g,
                                                .joint = j,
                                                .n_operands = r->operands[ZERO] ? 3 : 2,
                                                .operands = operands,
                                                .n_outputs = 1,
                                                .outputs = &codes};
        status = msc_reference_find(MSC_OP_QUANTIZE)(&call);
    }
    msc_array_release(moved);
    return status;
}

static const char *grid_name(const struct reader *r, int32_t tensor) {
    return msc_tensor_label(msc_graph_tensor(r->grids->d->g, tensor));
}

static enum msc_status check_length(const struct reader *r, int32_t tensor,
                                    const struct msc_array *found, int64_t expected) {
    return msc_array_n_elements(found) == expected
               ? MSC_OK
               : MSC_FAIL(MSC_E_STATE,
                          "baseline: tensor %s has %" PRId64 " elements on %s but %" PRId64
                          " with the reference kernels",
                          grid_name(r, tensor), msc_array_n_elements(found), r->run->numerics,
                          expected);
}

// `bounds` has the codes of x, of x moved down and of x moved up.
static enum msc_status compare_codes(const struct reader *r, const struct msc_joint *j,
                                     const struct msc_array *found,
                                     struct msc_array *const bounds[3]) {
    struct msc_quant_format format;
    msc_quant_format_init(&format, j, msc_array_dtype(found));
    for (int64_t i = 0; i < msc_array_n_elements(found); i++) {
        float code = msc_quant_format_value(&format, msc_array_get_i64(found, i)), of[3];
        for (int k = 0; k < 3; k++) {
            of[k] = msc_quant_format_value(&format, msc_array_get_i64(bounds[k], i));
        }
        float low = fminf(of[1], of[2]), high = fmaxf(of[1], of[2]);
        bool is_same = code == of[0] || (isnan(code) && isnan(of[0]));
        if (!is_same && !(code >= low && code <= high)) {
            return MSC_FAIL(MSC_E_STATE,
                            "baseline: %s[%" PRId64
                            "] is %g on %s but %g with the reference kernels, quantised from "
                            "%.9g; expected %g to %g, from values within atol %g and rtol %g of "
                            "it; please report this, and try another --device",
                            grid_name(r, j->outputs[0]), i, (double)code, r->run->numerics,
                            (double)of[0], msc_array_get_double(r->operands[X], i), (double)low,
                            (double)high, r->run->limits.atol, r->run->limits.rtol);
        }
        r->run->n_steps += !is_same;
    }
    r->run->n_elements += msc_array_n_elements(found);
    return MSC_OK;
}

static enum msc_status check_codes(const struct reader *r, const struct msc_joint *j) {
    static const double signs[3] = {0, -1, 1};
    const struct msc_array *found = found_of(r, j->outputs[0]);
    struct msc_array *bounds[3] = {NULL};
    MSC_TRY(check_length(r, j->outputs[0], found, msc_array_n_elements(r->operands[X])));
    enum msc_status status = MSC_OK;
    for (int k = 0; status == MSC_OK && k < 3; k++) {
        status = quantise_moved(&bounds[k], r, j, found, signs[k]);
    }
    status = status == MSC_OK ? compare_codes(r, j, found, bounds) : status;
    for (int k = 0; k < 3; k++) {
        msc_array_release(bounds[k]);
    }
    return status;
}

// ---- Ranges found at run time ------------------------------------------------------------------

// Checks that scale and zero point belong to a range whose ends are close to the ends of x's range.
static enum msc_status check_range(const struct reader *r, const struct msc_joint *j) {
    double ends[3][2] = {{0}}; // ends of the range: of x, of x moved down, of x moved up
    static const double signs[3] = {0, -1, 1};
    for (int k = 0; k < 3; k++) {
        struct msc_array *moved = NULL;
        MSC_TRY(msc_outputs_move(&moved, r->operands[X], &r->run->limits, signs[k]));
        for (int64_t i = 0; i < msc_array_n_elements(moved); i++) {
            double x = msc_array_get_double(moved, i);
            ends[k][0] = fmin(ends[k][0], x);
            ends[k][1] = fmax(ends[k][1], x);
        }
        msc_array_release(moved);
    }
    double scale = msc_array_get_double(r->operands[SCALE], 0);
    double zero = msc_array_get_double(r->operands[ZERO], 0);
    double least = (ends[1][1] - ends[2][0]) / 255, most = (ends[2][1] - ends[1][0]) / 255;
    double rounding = 0x1p-20 * most;
    bool is_empty = ends[0][0] == 0 && ends[0][1] == 0;
    bool is_scale =
        (is_empty && scale == 1) || (scale >= least - rounding && scale <= most + rounding);
    bool is_zero =
        zero >= rint(-ends[2][0] / scale - 0x1p-12) && zero <= rint(-ends[1][0] / scale + 0x1p-12);
    float own = is_empty ? 1 : ((float)ends[0][1] - (float)ends[0][0]) / 255;
    if (is_scale && is_zero) {
        r->run->n_ranges += scale != (double)own;
        return MSC_OK;
    }
    return MSC_FAIL(
        MSC_E_STATE,
        "baseline: joint %s has scale %.9g and zero point %g on %s, which do not fit the "
        "range of %.9g to %.9g with the reference kernels; please report it, and try "
        "another --device",
        j->name, scale, zero, r->run->numerics, ends[0][0], ends[0][1]);
}

static enum msc_status check_dynamic(struct reader *r, const struct msc_joint *j) {
    for (int i = SCALE; i < N_OPERANDS; i++) {
        if (j->n_outputs <= i) {
            return MSC_OK; // without scale and zero point, nothing can interpret the codes
        }
        MSC_TRY(check_length(r, j->outputs[i], found_of(r, j->outputs[i]), 1));
        r->operands[i] = msc_array_retain(found_of(r, j->outputs[i]));
    }
    MSC_TRY(check_range(r, j));
    return check_codes(r, j);
}

// ---- Codes made from codes ---------------------------------------------------------------------

static enum msc_status check_sums(const struct reader *r, int32_t tensor,
                                  const struct msc_array *truth) {
    const struct msc_array *found = found_of(r, tensor);
    int64_t n = msc_array_n_elements(truth), n_steps = 0;
    MSC_TRY(check_length(r, tensor, found, n));
    for (int64_t i = 0; i < n; i++) {
        int64_t a = msc_array_get_i64(found, i), b = msc_array_get_i64(truth, i);
        n_steps += a != b;
        if (a > b + 1 || a < b - 1 || n_steps > 1 + n / CODES_FOR_A_STEP) {
            return MSC_FAIL(
                MSC_E_STATE,
                "baseline: %s[%" PRId64 "] is %" PRId64 " on %s but %" PRId64
                " with the reference kernels for the same integers, and %" PRId64
                " elements before it differ; please report it, and try another --device",
                grid_name(r, tensor), i, a, r->run->numerics, b, n_steps - 1);
        }
    }
    r->run->n_steps += n_steps;
    r->run->n_elements += n;
    return MSC_OK;
}

// ---- The run ----------------------------------------------------------------------------------

static bool is_last_operand(const struct msc_joint *j, int32_t operand) {
    for (int32_t i = operand + 1; i < j->n_operands; i++) {
        if (j->operands[i] != MSC_NO_ID) {
            return false;
        }
    }
    return true;
}

// Gives a joint its operand: the codes found, if the operand is on a grid. After the last operand
// of a joint that quantises, checks its codes.
static enum msc_status read_found(void *payload, struct msc_array **out, const struct msc_joint *j,
                                  int32_t operand, const struct msc_array *array) {
    struct reader *r = payload;
    const struct msc_array *found = found_of(r, j->operands[operand]);
    enum msc_status status = MSC_OK;
    array = found ? found : array;
    if ((j->op == MSC_OP_QUANTIZE || j->op == MSC_OP_DYNAMIC_QUANTIZE) &&
        found_of(r, j->outputs[0])) {
        r->operands[operand] = msc_array_retain(array);
        if (is_last_operand(j, operand)) {
            status = j->op == MSC_OP_QUANTIZE ? check_codes(r, j) : check_dynamic(r, j);
            forget_operands(r);
        }
    }
    *out = status == MSC_OK ? msc_array_retain(array) : NULL;
    return status;
}

static bool is_of_codes(const struct msc_grids *grids, int32_t tensor) {
    enum msc_op op = msc_graph_joint(grids->d->g, msc_graph_producer(grids->d->g, tensor))->op;
    return op == MSC_OP_QLINEAR_CONV || op == MSC_OP_QLINEAR_MATMUL;
}

// `given` [n_inputs] and `wanted` [n_wanted + grids->n] are scratch. `truth` receives the arrays of
// the tensors in `wanted`.
static enum msc_status run_from_grids(struct msc_array *truth[], int32_t given[], int32_t wanted[],
                                      struct reader *r) {
    const struct msc_graph *g = r->grids->d->g;
    struct msc_reference_run part = {.graph = g,
                                     .n_given = (size_t)msc_graph_n_inputs(g),
                                     .given = given,
                                     .arrays = r->run->inputs,
                                     .n_wanted = r->run->n_wanted,
                                     .wanted = wanted,
                                     .read = read_found,
                                     .payload = r,
                                     .limits = r->run->reference};
    for (size_t i = 0; i < part.n_given; i++) {
        given[i] = msc_graph_input(g, (int32_t)i);
    }
    memcpy(wanted, r->run->wanted, r->run->n_wanted * sizeof wanted[0]);
    for (size_t i = 0; i < r->grids->n; i++) {
        if (is_of_codes(r->grids, r->grids->tensors[i])) {
            wanted[part.n_wanted++] = r->grids->tensors[i];
        }
    }
    enum msc_status status = msc_reference_run_part(truth, &part);
    for (size_t i = r->run->n_wanted; status == MSC_OK && i < part.n_wanted; i++) {
        status = check_sums(r, wanted[i], truth[i]);
    }
    return status;
}

enum msc_status msc_grids_run(struct msc_array *out[], const struct msc_grids *grids,
                              struct msc_grids_run *run) {
    struct reader r = {.grids = grids, .run = run};
    size_t n_most = run->n_wanted + grids->n + 1;
    int32_t *given = msc_alloc_zero((size_t)msc_graph_n_inputs(grids->d->g) + 1, sizeof given[0]);
    int32_t *wanted = msc_alloc_zero(n_most, sizeof wanted[0]);
    struct msc_array **truth = msc_alloc_zero(n_most, sizeof *truth);
    enum msc_status status = given && wanted && truth ? run_from_grids(truth, given, wanted, &r)
                                                      : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    memset(out, 0, run->n_wanted * sizeof *out);
    for (size_t i = 0; truth && i < n_most; i++) {
        if (status == MSC_OK && i < run->n_wanted) {
            out[i] = truth[i];
        } else {
            msc_array_release(truth[i]);
        }
    }
    forget_operands(&r);
    msc_free(given);
    msc_free(wanted);
    msc_free(truth);
    return status;
}
