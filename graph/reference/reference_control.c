// Joints with bodies (If, Loop, Scan), which run the joints of a body as often as needed.
#include "graph/reference/reference_internal.h"

#include "base/alloc.h"

#include <string.h>

// Inputs and outputs of one run of a body. The struct owns these references.
struct turn {
    const struct msc_graph *body;
    const struct msc_reference_limits *limits;
    struct msc_array **inputs;  // [n_inputs]
    struct msc_array **outputs; // [n_outputs]
    int32_t n_inputs, n_outputs;
};

static void turn_finish(struct turn *t) {
    for (int32_t i = 0; t->inputs && i < t->n_inputs; i++) {
        msc_array_release(t->inputs[i]);
    }
    for (int32_t i = 0; t->outputs && i < t->n_outputs; i++) {
        msc_array_release(t->outputs[i]);
    }
    msc_free(t->inputs);
    msc_free(t->outputs);
}

static enum msc_status turn_init(struct turn *t, const struct msc_reference_call *call,
                                 const struct msc_graph *body) {
    *t = (struct turn){.body = body,
                       .limits = call->limits,
                       .n_inputs = msc_graph_n_inputs(body),
                       .n_outputs = msc_graph_n_outputs(body)};
    t->inputs = msc_alloc_zero((size_t)t->n_inputs + 1, sizeof(t->inputs[0]));
    t->outputs = msc_alloc_zero((size_t)t->n_outputs + 1, sizeof(t->outputs[0]));
    MSC_TRY(MSC_ALLOCATED(t->inputs && t->outputs));
    return MSC_OK;
}

static void set_input(struct turn *t, int32_t i, struct msc_array *array) {
    msc_array_release(t->inputs[i]);
    t->inputs[i] = array;
}

static enum msc_status copy_view(struct msc_array **out, const struct msc_view *v) {
    return msc_array_create_from(out, v->dtype, v->n_dims, v->dims, v->data);
}

// Passes the operands from index `first` on to the body's inputs from index `to` on.
static enum msc_status copy_operands(struct turn *t, const struct msc_reference_call *call,
                                     int first, int32_t to) {
    for (int i = first; i < call->n_operands; i++, to++) {
        if (to >= t->n_inputs) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint %s has %d operands, but its body has only %d inputs",
                            call->joint->name, call->n_operands, (int)t->n_inputs);
        }
        MSC_TRY(copy_view(&t->inputs[to], &call->operands[i]));
    }
    return MSC_OK;
}

static enum msc_status run_turn(struct turn *t) {
    int32_t wanted[256];
    if (t->n_outputs > 256) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "body %s has %d outputs, expected at most 256",
                        msc_graph_name(t->body), (int)t->n_outputs);
    }
    for (int32_t i = 0; i < t->n_outputs; i++) {
        msc_array_release(t->outputs[i]);
        t->outputs[i] = NULL;
        wanted[i] = msc_graph_output(t->body, i);
    }
    return msc_reference_run_graph(t->outputs, t->body, (const struct msc_array *const *)t->inputs,
                                   wanted, (size_t)t->n_outputs, t->limits);
}

// Reads the first element of a condition or count.
static enum msc_status read_control(int64_t *value, const struct msc_joint *joint, const char *what,
                                    const struct msc_view *v) {
    if (msc_view_n_elements(v) < 1) {
        return MSC_FAIL(MSC_E_INVALID, "joint %s: its %s is empty, expected one element",
                        joint->name, what);
    }
    *value = msc_reference__get_i64_at(v, 0);
    return MSC_OK;
}

static enum msc_status reference_control_give(const struct msc_reference_call *call, int output,
                                              const struct msc_array *array) {
    MSC_TRY(msc_reference__allocate(call, output, msc_array_n_dims(array), msc_array_dims(array)));
    size_t n_bytes = msc_array_n_bytes(array);
    if (n_bytes > 0) {
        memcpy(call->outputs[output].data, msc_array_data(array), n_bytes);
    }
    return MSC_OK;
}

// Runs a body once; its inputs are the operands from index `first` on.
static enum msc_status run_once(const struct msc_reference_call *call, int32_t which, int first) {
    struct turn t;
    enum msc_status status;
    MSC_TRY_OUT(turn_init(&t, call, call->joint->graphs[which]));
    MSC_TRY_OUT(copy_operands(&t, call, first, 0));
    MSC_TRY_OUT(run_turn(&t));
    for (int i = 0; i < call->n_outputs; i++) {
        MSC_TRY_OUT(reference_control_give(call, i, t.outputs[i]));
    }
out:
    turn_finish(&t);
    return status;
}

enum msc_status msc_reference__if(const struct msc_reference_call *call) {
    int64_t condition = 0;
    MSC_TRY(read_control(&condition, call->joint, "condition", &call->operands[0]));
    return run_once(call, condition != 0 ? 0 : 1, 1);
}

enum msc_status msc_reference__held(const struct msc_reference_call *call) {
    return run_once(call, 0, 0);
}

// ---- Outputs gathered over iterations ---------------------------------------------------------

// The slices of one output, one per iteration.
struct slices {
    struct msc_array **items;
    size_t n, capacity;
};

static enum msc_status keep_slice(struct slices *s, const struct msc_array *array) {
    MSC_TRY(msc_grow(&s->items, &s->capacity, s->n + 1, sizeof(s->items[0])));
    s->items[s->n++] = msc_array_retain(array);
    return MSC_OK;
}

static void slices_finish(struct slices s[], int n) {
    for (int i = 0; s && i < n; i++) {
        for (size_t k = 0; k < s[i].n; k++) {
            msc_array_release(s[i].items[k]);
        }
        msc_free(s[i].items);
    }
    msc_free(s);
}

// Copies a slice to position `at` of `n` along `axis` of `out`. Without this axis, `out` has the
// shape of the slice.
static void lay_slice(char *out, const struct msc_array *slice, int64_t at, int64_t n, int axis) {
    int64_t outer = msc_dims_product(axis, msc_array_dims(slice));
    int n_inner = msc_array_n_dims(slice) - axis;
    size_t inner = (size_t)msc_dims_product(n_inner, msc_array_dims(slice) + axis) *
                   msc_dtype_bytes(msc_array_dtype(slice));
    for (int64_t o = 0; o < outer && inner > 0; o++) {
        memcpy(out + (size_t)(o * n + at) * inner,
               (const char *)msc_array_data(slice) + (size_t)o * inner, inner);
    }
}

// Stacks the slices along a new axis; the output is empty if there was no iteration.
static enum msc_status stack_slices(struct msc_array **out, const struct slices *s,
                                    const struct msc_tensor *t, int64_t axis, bool is_reverse) {
    int64_t dims[MSC_MAX_DIMS + 1] = {0};
    int n_dims = t->n_dims + 1, from = 0;
    axis = axis < 0 ? axis + n_dims : axis;
    if (n_dims > MSC_MAX_DIMS || axis < 0 || axis >= n_dims) {
        return MSC_FAIL(MSC_E_INVALID,
                        "tensor %s cannot be stacked along axis %lld, which is out of range",
                        t->name, (long long)axis);
    }
    for (int d = 0; d < n_dims; d++) {
        int64_t length = d == axis ? (int64_t)s->n : 0;
        if (d != axis) {
            length = s->n > 0 ? msc_array_dims(s->items[0])[from] : t->dims[from];
            from++;
        }
        dims[d] = length < 0 ? 0 : length;
    }
    MSC_TRY(msc_array_create(out, t->dtype, n_dims, dims));
    for (size_t i = 0; i < s->n; i++) {
        int64_t at = (int64_t)(is_reverse ? s->n - 1 - i : i);
        if (msc_array_n_elements(s->items[i]) * (int64_t)s->n != msc_array_n_elements(*out)) {
            msc_array_release(*out);
            *out = NULL;
            return MSC_FAIL(MSC_E_INVALID, "tensor %s changes its shape between iterations",
                            t->name);
        }
        lay_slice(msc_array_data(*out), s->items[i], at, (int64_t)s->n, (int)axis);
    }
    return MSC_OK;
}

static enum msc_status give_stacked(const struct msc_reference_call *call, int output,
                                    const struct slices *s, const struct msc_tensor *t,
                                    int64_t axis, bool is_reverse) {
    struct msc_array *array = NULL;
    enum msc_status status = stack_slices(&array, s, t, axis, is_reverse);
    if (status != MSC_OK) {
        return msc_status_prefix(status, "joint %s", call->joint->name);
    }
    status = reference_control_give(call, output, array);
    msc_array_release(array);
    return status;
}

// ---- Loop -------------------------------------------------------------------------------------

struct loop {
    struct turn turn;
    int64_t n_states;
    struct slices *slices; // [n_scanned]
    int n_scanned;
};

static enum msc_status loop_init(struct loop *l, const struct msc_reference_call *call) {
    *l = (struct loop){.n_states = 0};
    MSC_TRY(msc_reference__get_i64(&l->n_states, call, "n_states"));
    MSC_TRY(turn_init(&l->turn, call, call->joint->graphs[0]));
    MSC_TRY(copy_operands(&l->turn, call, 2, 2));
    l->n_scanned = call->n_outputs - (int)l->n_states;
    if (l->n_scanned < 0 || l->turn.n_outputs != call->n_outputs + 1) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: %d outputs do not match its body and its %lld states",
                        call->joint->name, call->n_outputs, (long long)l->n_states);
    }
    l->slices = msc_alloc_zero((size_t)l->n_scanned + 1, sizeof(l->slices[0]));
    return MSC_ALLOCATED(l->slices);
}

static enum msc_status loop_turn(struct loop *l, const struct msc_joint *joint, int64_t i,
                                 int64_t *goes_on) {
    struct msc_array *number, *flag;
    uint8_t condition = *goes_on != 0;
    MSC_TRY(msc_array_create_from(&number, MSC_DTYPE_I64, 0, NULL, &i));
    set_input(&l->turn, 0, number);
    MSC_TRY(msc_array_create_from(&flag, MSC_DTYPE_BOOL, 0, NULL, &condition));
    set_input(&l->turn, 1, flag);
    MSC_TRY(run_turn(&l->turn));
    struct msc_view after = msc_view_of_array(l->turn.outputs[0]);
    MSC_TRY(read_control(goes_on, joint, "condition", &after));
    for (int64_t s = 0; s < l->n_states; s++) {
        set_input(&l->turn, (int32_t)s + 2, msc_array_retain(l->turn.outputs[s + 1]));
    }
    for (int s = 0; s < l->n_scanned; s++) {
        MSC_TRY(keep_slice(&l->slices[s], l->turn.outputs[1 + l->n_states + s]));
    }
    return MSC_OK;
}

// Maximum number of iterations. Sets *is_counted to true if the maximum is the joint's own count,
// and to false if it is a limit.
static enum msc_status most_turns(int64_t *most, bool *is_counted,
                                  const struct msc_reference_call *call) {
    int64_t count = INT64_MAX, limit = call->limits ? call->limits->max_turns : 0;
    if (msc_reference__has(call, 0)) {
        MSC_TRY(read_control(&count, call->joint, "number of iterations", &call->operands[0]));
    }
    *is_counted = count < INT32_MAX;
    *most = *is_counted ? count : limit > 0 ? limit : MSC_REFERENCE_MAX_TURNS;
    return MSC_OK;
}

enum msc_status msc_reference__loop(const struct msc_reference_call *call) {
    struct loop l;
    enum msc_status status;
    bool is_counted;
    int64_t most, goes_on = 1;
    MSC_TRY_OUT(loop_init(&l, call));
    MSC_TRY_OUT(most_turns(&most, &is_counted, call));
    if (msc_reference__has(call, 1)) {
        MSC_TRY_OUT(read_control(&goes_on, call->joint, "condition", &call->operands[1]));
    }
    for (int64_t i = 0; i < most && goes_on; i++) {
        MSC_TRY_OUT(loop_turn(&l, call->joint, i, &goes_on));
    }
    if (goes_on && !is_counted) {
        status =
            MSC_FAIL(MSC_E_UNSUPPORTED,
                     "joint %s: still running after %lld iterations, and no count limits the loop",
                     call->joint->name, (long long)most);
        goto out;
    }
    for (int i = 0; i < call->n_outputs; i++) {
        const struct msc_tensor *t =
            msc_graph_tensor(l.turn.body, msc_graph_output(l.turn.body, i + 1));
        MSC_TRY_OUT(i < l.n_states ? reference_control_give(call, i, l.turn.inputs[i + 2])
                                   : give_stacked(call, i, &l.slices[i - l.n_states], t, 0, false));
    }
out:
    slices_finish(l.slices, l.n_scanned);
    turn_finish(&l.turn);
    return status;
}

// ---- Scan -------------------------------------------------------------------------------------

enum { MOST_SCANS = 64 };

struct scan {
    struct turn turn;
    int64_t n_states, n_scans, n_turns, n_batches;
    bool has_batch;
    int n_scanned;
    int64_t in_axes[MOST_SCANS], in_reverse[MOST_SCANS];
    int64_t out_axes[MOST_SCANS], out_reverse[MOST_SCANS];
    struct msc_array **states; // [n_batches][n_states] final states
    struct slices *slices;     // [n_batches][n_scanned]
};

// Takes slice `at` along `axis` of a view; the slice does not have that axis.
static enum msc_status take_slice(struct msc_array **out, const struct msc_view *v, int64_t axis,
                                  int64_t at) {
    int64_t dims[MSC_MAX_DIMS] = {0};
    int n = 0;
    for (int d = 0; d < v->n_dims; d++) {
        if (d != axis) {
            dims[n++] = v->dims[d];
        }
    }
    MSC_TRY(msc_array_create(out, v->dtype, n, dims));
    int64_t outer = msc_dims_product((int)axis, v->dims);
    size_t inner = (size_t)msc_dims_product(v->n_dims - (int)axis - 1, v->dims + axis + 1) *
                   msc_dtype_bytes(v->dtype);
    for (int64_t o = 0; o < outer && inner > 0; o++) {
        memcpy((char *)msc_array_data(*out) + (size_t)o * inner,
               (const char *)v->data + (size_t)(o * v->dims[axis] + at) * inner, inner);
    }
    return MSC_OK;
}

static struct msc_view view_of_batch(const struct msc_view *v, int64_t batch) {
    struct msc_view part = *v;
    part.n_dims--;
    memmove(part.dims, v->dims + 1, (size_t)part.n_dims * sizeof(part.dims[0]));
    part.data = (char *)v->data + (size_t)batch * msc_view_n_bytes(&part);
    return part;
}

static struct msc_view operand_of_batch(const struct scan *s, const struct msc_reference_call *call,
                                        int operand, int64_t batch) {
    const struct msc_view *v = &call->operands[operand];
    return s->has_batch ? view_of_batch(v, batch) : *v;
}

static enum msc_status scan_init(struct scan *s, const struct msc_reference_call *call) {
    memset(s, 0, sizeof(*s));
    MSC_TRY(msc_reference__get_i64(&s->n_states, call, "n_states"));
    MSC_TRY(msc_reference__get_i64(&s->n_scans, call, "n_scans"));
    MSC_TRY(msc_reference__get_bool(&s->has_batch, call, "has_batch"));
    (void)msc_joint_attr_list(call->joint, "scan_input_axes", s->in_axes, MOST_SCANS);
    (void)msc_joint_attr_list(call->joint, "scan_input_directions", s->in_reverse, MOST_SCANS);
    (void)msc_joint_attr_list(call->joint, "scan_output_axes", s->out_axes, MOST_SCANS);
    (void)msc_joint_attr_list(call->joint, "scan_output_directions", s->out_reverse, MOST_SCANS);
    MSC_TRY(turn_init(&s->turn, call, call->joint->graphs[0]));
    s->n_scanned = call->n_outputs - (int)s->n_states;
    s->n_batches = s->has_batch ? call->operands[s->n_states].dims[0] : 1;
    if (s->n_scanned < 0 || s->n_scanned > MOST_SCANS || s->n_scans > MOST_SCANS ||
        s->turn.n_outputs != call->n_outputs) {
        return MSC_FAIL(MSC_E_INVALID,
                        "joint %s: %d outputs do not match its body and its %lld states",
                        call->joint->name, call->n_outputs, (long long)s->n_states);
    }
    for (int i = 0; i < s->n_scans; i++) {
        int rank = call->operands[s->n_states + i].n_dims - s->has_batch;
        s->in_axes[i] += s->in_axes[i] < 0 ? rank : 0;
        if (s->in_axes[i] < 0 || s->in_axes[i] >= rank) {
            return MSC_FAIL(MSC_E_INVALID,
                            "joint %s: scan axis %lld is out of range for %d dimensions",
                            call->joint->name, (long long)s->in_axes[i], rank);
        }
    }
    s->n_turns = call->operands[s->n_states].dims[s->in_axes[0] + s->has_batch];
    size_t n = (size_t)s->n_batches;
    s->states = msc_alloc_zero(n * (size_t)s->n_states + 1, sizeof(s->states[0]));
    s->slices = msc_alloc_zero(n * (size_t)s->n_scanned + 1, sizeof(s->slices[0]));
    return MSC_ALLOCATED(s->states && s->slices);
}

static enum msc_status scan_batch(struct scan *s, const struct msc_reference_call *call,
                                  int64_t batch) {
    struct msc_array *array;
    for (int i = 0; i < s->n_states; i++) {
        struct msc_view v = operand_of_batch(s, call, i, batch);
        MSC_TRY(copy_view(&array, &v));
        set_input(&s->turn, i, array);
    }
    for (int i = (int)(s->n_states + s->n_scans); i < call->n_operands; i++) {
        MSC_TRY(copy_view(&array, &call->operands[i]));
        set_input(&s->turn, i, array);
    }
    for (int64_t t = 0; t < s->n_turns; t++) {
        for (int i = 0; i < s->n_scans; i++) {
            struct msc_view v = operand_of_batch(s, call, (int)s->n_states + i, batch);
            int64_t at = s->in_reverse[i] ? s->n_turns - 1 - t : t;
            MSC_TRY(take_slice(&array, &v, s->in_axes[i], at));
            set_input(&s->turn, (int32_t)s->n_states + i, array);
        }
        MSC_TRY(run_turn(&s->turn));
        for (int i = 0; i < s->n_states; i++) {
            set_input(&s->turn, i, msc_array_retain(s->turn.outputs[i]));
        }
        for (int i = 0; i < s->n_scanned; i++) {
            MSC_TRY(
                keep_slice(&s->slices[batch * s->n_scanned + i], s->turn.outputs[s->n_states + i]));
        }
    }
    for (int i = 0; i < s->n_states; i++) {
        s->states[batch * s->n_states + i] = msc_array_retain(s->turn.inputs[i]);
    }
    return MSC_OK;
}

// Concatenates output `i` of all batches.
static enum msc_status give_batches(struct scan *s, const struct msc_reference_call *call, int i) {
    const struct msc_tensor *t = msc_graph_tensor(s->turn.body, msc_graph_output(s->turn.body, i));
    struct slices parts = {.items = NULL};
    enum msc_status status = MSC_OK;
    for (int64_t b = 0; status == MSC_OK && b < s->n_batches; b++) {
        struct msc_array *part = NULL;
        int k = i - (int)s->n_states;
        if (k < 0) {
            part = msc_array_retain(s->states[b * s->n_states + i]);
        } else {
            status = stack_slices(&part, &s->slices[b * s->n_scanned + k], t, s->out_axes[k],
                                  s->out_reverse[k] != 0);
        }
        if (status == MSC_OK) {
            status =
                s->has_batch ? keep_slice(&parts, part) : reference_control_give(call, i, part);
        }
        msc_array_release(part);
    }
    if (status == MSC_OK && s->has_batch) {
        struct msc_tensor whole = *t;
        whole.n_dims += i >= s->n_states;
        status = give_stacked(call, i, &parts, &whole, 0, false);
    }
    for (size_t k = 0; k < parts.n; k++) {
        msc_array_release(parts.items[k]);
    }
    msc_free(parts.items);
    return status;
}

enum msc_status msc_reference__scan(const struct msc_reference_call *call) {
    struct scan s;
    enum msc_status status;
    MSC_TRY_OUT(scan_init(&s, call));
    for (int64_t b = 0; b < s.n_batches; b++) {
        MSC_TRY_OUT(scan_batch(&s, call, b));
    }
    for (int i = 0; i < call->n_outputs; i++) {
        MSC_TRY_OUT(give_batches(&s, call, i));
    }
out:
    for (int64_t i = 0; s.states && i < s.n_batches * s.n_states; i++) {
        msc_array_release(s.states[i]);
    }
    msc_free(s.states);
    slices_finish(s.slices, (int)(s.n_batches * s.n_scanned));
    turn_finish(&s.turn);
    return status;
}
