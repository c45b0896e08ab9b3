#include "cli/placement.h"

#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "cli/table.h"
#include "graph/passes/bind.h"
#include "kernels/backend.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/planner.h"
#include "kernels/plan.h"

#include <stdio.h>
#include <string.h>

static const char *const layouts[] = {"plain", "channels last"};
static const char *const kinds[] = {"run", "alias", "reorder"};

// ---- Totals -----------------------------------------------------------------------------------

enum { MAX_DEVICES = 4 };

struct totals {
    int n_devices;
    struct {
        const char *name;
        int32_t n_steps;
        double macs;
    } devices[MAX_DEVICES]; // the first is the backend's own
    int32_t n_remainder;    // number of joints whose lengths depend on data, and of their consumers
    int32_t n_copies;       // number of copies of values between devices
    uint64_t copied_bytes;
};

static int find_device(struct totals *t, const char *name) {
    int d = 0;
    while (d < t->n_devices && strcmp(t->devices[d].name, name) != 0) {
        d++;
    }
    if (d == t->n_devices && d < MAX_DEVICES) {
        t->devices[t->n_devices++].name = name;
    }
    return d < MAX_DEVICES ? d : 0;
}

// Values are stored on the backend's own device. A step on another device copies its inputs there
// and its outputs back.
static void count_copies(struct totals *t, const struct msc_plan *plan, const int32_t values[],
                         int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        t->n_copies++;
        t->copied_bytes += plan->values[values[i]].n_bytes;
    }
}

// After the steps, the reference kernels run the joints whose lengths depend on data, and their
// consumers, one by one.
static const char remainder_place[] = "cpu: reference, joint by joint";

static int32_t count_remainder(const struct msc_plan *plan) {
    int32_t n = 0;
    for (int32_t i = 0; i < msc_graph_n_joints(plan->graph); i++) {
        n += plan->in_remainder[i];
    }
    return n;
}

static struct totals add_up(const struct msc_plan *plan) {
    struct totals t = {0};
    find_device(&t, plan->backend->def->name);
    t.n_remainder = count_remainder(plan);
    for (int32_t i = 0; i < plan->n_steps; i++) {
        const struct msc_step *step = &plan->steps[i];
        if (step->kind == MSC_STEP_ALIAS) {
            continue;
        }
        int d = find_device(&t, msc_backend_place(plan->backend, step).device);
        t.devices[d].n_steps++;
        t.devices[d].macs += step->macs;
        if (d > 0) {
            count_copies(&t, plan, step->inputs, step->n_inputs);
            count_copies(&t, plan, step->outputs, step->n_outputs);
        }
    }
    return t;
}

// ---- As text ----------------------------------------------------------------------------------

// Cells of a line: the first joint of a step, or a joint that is fused into it.
struct line {
    char step[16], place[96];
    const char *op, *joint;
    char result[MSC_DIMS_TEXT_BYTES + 64];
};

struct columns {
    size_t place, op, joint;
};

static void set_result(struct line *l, const struct msc_plan *plan, const struct msc_step *step) {
    const struct msc_value *v = &plan->values[step->outputs[0]];
    char dims[MSC_DIMS_TEXT_BYTES];
    int n = snprintf(l->result, sizeof l->result, "%s %s%s%s",
                     msc_dims_format(dims, v->n_dims, v->dims), msc_dtype_name(v->dtype),
                     v->layout == MSC_LAYOUT_NCHW ? "" : ", ",
                     v->layout == MSC_LAYOUT_NCHW ? "" : layouts[v->layout]);
    if (step->macs > 0 && n > 0 && (size_t)n < sizeof l->result) {
        snprintf(l->result + n, sizeof l->result - (size_t)n, ", %.3g MACs", step->macs);
    }
}

// Line `k` of a step.
static struct line line_of(const struct msc_plan *plan, int32_t index, int32_t k) {
    const struct msc_step *step = &plan->steps[index];
    struct line l = {.op = "(reorder)", .joint = ""};
    if (k < step->n_joints) {
        l.op = msc_op_info(step->joints[k].joint->op)->name;
        l.joint = step->joints[k].joint->name;
    } else {
        l.joint = msc_graph_tensor(plan->graph, plan->values[step->outputs[0]].tensor)->name;
    }
    if (k > 0) {
        snprintf(l.place, sizeof l.place, "in step %d", (int)index);
        return l;
    }
    struct msc_placement p = msc_backend_place(plan->backend, step);
    snprintf(l.step, sizeof l.step, "%d", (int)index);
    if (step->kind == MSC_STEP_ALIAS) {
        snprintf(l.place, sizeof l.place, "no work");
    } else {
        snprintf(l.place, sizeof l.place, "%s: %s", p.device, p.kernel);
    }
    set_result(&l, plan, step);
    return l;
}

static struct line line_of_remainder(const struct msc_plan *plan, const struct msc_joint *j) {
    struct line l = {.step = "-", .op = msc_op_info(j->op)->name, .joint = j->name};
    const struct msc_tensor *t = msc_graph_tensor(plan->graph, j->outputs[0]);
    char dims[MSC_DIMS_TEXT_BYTES];
    snprintf(l.place, sizeof l.place, "%s", remainder_place);
    snprintf(l.result, sizeof l.result, "%s %s", msc_dims_format(dims, t->n_dims, t->dims),
             msc_dtype_name(t->dtype));
    return l;
}

static int32_t n_lines(const struct msc_step *step) {
    return step->n_joints > 0 ? step->n_joints : 1;
}

static void widen(size_t *columns, const char *text, size_t most) {
    size_t n = msc_table_width(text);
    n = n < most ? n : most;
    *columns = n > *columns ? n : *columns;
}

static void widen_all(struct columns *c, const struct line *l) {
    widen(&c->place, l->place, sizeof l->place);
    widen(&c->op, l->op, MSC_CLI_NAME_COLUMNS);
    widen(&c->joint, l->joint, MSC_CLI_NAME_COLUMNS);
}

static void write_placed_line(struct msc_str *out, const struct line *l, const struct columns *c) {
    msc_str_printf(out, "%4s  ", l->step);
    msc_cli_write_padded(out, l->place, c->place);
    msc_cli_write_padded(out, l->op, c->op);
    if (l->result[0] == '\0') {
        msc_cli_write_short(out, l->joint, c->joint);
    } else {
        msc_cli_write_padded(out, l->joint, c->joint);
        msc_str_append(out, l->result);
    }
    msc_str_char(out, '\n');
}

static void write_placement(struct msc_str *out, const struct msc_plan *plan) {
    struct line head = {"step", "runs on", "op", "joint", "result of the step"};
    struct columns c = {strlen(head.place), strlen(head.op), strlen(head.joint)};
    for (int32_t i = 0; i < plan->n_steps; i++) {
        for (int32_t k = 0; k < n_lines(&plan->steps[i]); k++) {
            struct line l = line_of(plan, i, k);
            widen_all(&c, &l);
        }
    }
    for (int32_t i = 0; i < msc_graph_n_joints(plan->graph); i++) {
        struct line l = line_of_remainder(plan, msc_graph_joint(plan->graph, i));
        if (plan->in_remainder[i]) {
            widen_all(&c, &l);
        }
    }
    msc_str_printf(out, "on %s\n", plan->backend->def->numerics(plan->backend));
    write_placed_line(out, &head, &c);
    for (int32_t i = 0; i < plan->n_steps; i++) {
        for (int32_t k = 0; k < n_lines(&plan->steps[i]); k++) {
            struct line l = line_of(plan, i, k);
            write_placed_line(out, &l, &c);
        }
    }
    for (int32_t i = 0; i < msc_graph_n_joints(plan->graph); i++) {
        struct line l = line_of_remainder(plan, msc_graph_joint(plan->graph, i));
        if (plan->in_remainder[i]) {
            write_placed_line(out, &l, &c);
        }
    }
    struct totals t = add_up(plan);
    for (int d = 0; d < t.n_devices; d++) {
        msc_str_printf(out, "%s: %d steps, %.3g MACs\n", t.devices[d].name,
                       (int)t.devices[d].n_steps, t.devices[d].macs);
    }
    if (t.n_remainder > 0) {
        msc_str_printf(out, "on cpu, joint by joint, as lengths depend on data: %d joints\n",
                       (int)t.n_remainder);
    }
    msc_str_printf(out, "copies between devices: %d, %llu bytes\n", (int)t.n_copies,
                   (unsigned long long)t.copied_bytes);
}

// ---- As JSON ----------------------------------------------------------------------------------

static enum msc_status add_joints(cJSON *object, const struct msc_step *step) {
    cJSON *joints = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "joints", joints));
    for (int32_t k = 0; k < step->n_joints; k++) {
        const struct msc_joint *j = step->joints[k].joint;
        cJSON *joint = cJSON_CreateObject();
        MSC_TRY(msc_json_push(joints, joint));
        MSC_TRY(msc_json_add_text(joint, "name", j->name));
        MSC_TRY(msc_json_add_text(joint, "op", msc_op_info(j->op)->name));
    }
    return MSC_OK;
}

static enum msc_status add_placed_result(cJSON *object, const struct msc_plan *plan,
                                         const struct msc_value *v) {
    cJSON *result = cJSON_CreateObject(), *shape = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "result", result));
    MSC_TRY(msc_json_add_text(result, "tensor", msc_graph_tensor(plan->graph, v->tensor)->name));
    MSC_TRY(msc_json_add(result, "shape", shape));
    for (int k = 0; k < v->n_dims; k++) {
        MSC_TRY(msc_json_push(shape, cJSON_CreateNumber((double)v->dims[k])));
    }
    MSC_TRY(msc_json_add_text(result, "dtype", msc_dtype_name(v->dtype)));
    return msc_json_add_text(result, "layout", layouts[v->layout]);
}

static enum msc_status add_placed_step(cJSON *steps, const struct msc_plan *plan, int32_t index) {
    const struct msc_step *step = &plan->steps[index];
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(steps, object));
    MSC_TRY(msc_json_add_number(object, "step", index));
    MSC_TRY(msc_json_add_text(object, "kind", kinds[step->kind]));
    if (step->kind != MSC_STEP_ALIAS) {
        struct msc_placement p = msc_backend_place(plan->backend, step);
        MSC_TRY(msc_json_add_text(object, "device", p.device));
        MSC_TRY(msc_json_add_text(object, "kernel", p.kernel));
    }
    MSC_TRY(add_joints(object, step));
    MSC_TRY(add_placed_result(object, plan, &plan->values[step->outputs[0]]));
    return msc_json_add_number(object, "macs", step->macs);
}

static enum msc_status add_remainder(cJSON *object, const struct msc_plan *plan) {
    cJSON *joints = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "joint_by_joint", joints));
    for (int32_t i = 0; i < msc_graph_n_joints(plan->graph); i++) {
        const struct msc_joint *j = msc_graph_joint(plan->graph, i);
        if (!plan->in_remainder[i]) {
            continue;
        }
        cJSON *joint = cJSON_CreateObject();
        MSC_TRY(msc_json_push(joints, joint));
        MSC_TRY(msc_json_add_text(joint, "name", j->name));
        MSC_TRY(msc_json_add_text(joint, "op", msc_op_info(j->op)->name));
        MSC_TRY(msc_json_add_text(joint, "device", "cpu"));
    }
    return MSC_OK;
}

static enum msc_status add_totals(cJSON *object, const struct msc_plan *plan) {
    struct totals t = add_up(plan);
    cJSON *devices = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "devices", devices));
    for (int d = 0; d < t.n_devices; d++) {
        cJSON *device = cJSON_CreateObject();
        MSC_TRY(msc_json_push(devices, device));
        MSC_TRY(msc_json_add_text(device, "device", t.devices[d].name));
        MSC_TRY(msc_json_add_number(device, "steps", t.devices[d].n_steps));
        MSC_TRY(msc_json_add_number(device, "macs", t.devices[d].macs));
    }
    MSC_TRY(msc_json_add_number(object, "copies", t.n_copies));
    return msc_json_add_number(object, "copied_bytes", (double)t.copied_bytes);
}

static enum msc_status print_placement_json(const struct msc_plan *plan) {
    cJSON *object = cJSON_CreateObject(), *steps = cJSON_CreateArray();
    enum msc_status status = msc_json_add(object, "steps", steps);
    for (int32_t i = 0; i < plan->n_steps && status == MSC_OK; i++) {
        status = add_placed_step(steps, plan, i);
    }
    MSC_TRY_OUT(status);
    if (count_remainder(plan) > 0) {
        MSC_TRY_OUT(add_remainder(object, plan));
    }
    MSC_TRY_OUT(msc_json_add_text(object, "numerics", plan->backend->def->numerics(plan->backend)));
    MSC_TRY_OUT(add_totals(object, plan));
    status = msc_cli_print_json(object);
out:
    cJSON_Delete(object);
    return status;
}

// ---- Planning ---------------------------------------------------------------------------------

// Binds symbols as given; the number of samples is 1 by default.
static enum msc_status bind_for_placement(struct msc_graph **out, const struct msc_graph *g,
                                          struct msc_arena *arena, const struct msc_binding given[],
                                          size_t n_given) {
    size_t n = 0;
    struct msc_binding *all =
        msc_arena_array(arena, n_given + (size_t)msc_graph_n_prims(g) + 1, sizeof *all);
    MSC_TRY(MSC_ALLOCATED(all));
    for (; n < n_given; n++) {
        all[n] = given[n];
    }
    for (int32_t i = 0; i < msc_graph_n_inputs(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_input(g, i));
        bool is_open = t->n_dims > 0 && t->dims[0] < 0;
        const char *symbol = is_open ? msc_graph_prim(g, t->prims[0])->name : NULL;
        for (size_t k = 0; symbol && k < n; k++) {
            symbol = strcmp(all[k].symbol, symbol) == 0 ? NULL : symbol;
        }
        if (symbol) {
            all[n++] = (struct msc_binding){.symbol = symbol, .value = 1};
        }
    }
    return msc_graph_bind_open(out, g, all, n);
}

enum msc_status msc_cli_print_placement(const struct msc_graph *g,
                                        const struct msc_binding bindings[], size_t n_bindings,
                                        const struct msc_cli_call *call,
                                        const struct msc_cli_common *common) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *backend = NULL;
    struct msc_graph *bound = NULL;
    struct msc_plan *plan = NULL;
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(bind_for_placement(&bound, g, call->arena, bindings, n_bindings));
    MSC_TRY_OUT(common->isa ? msc_backend_set_isa(common->isa) : MSC_OK);
    MSC_TRY_OUT(msc_backend_open(&backend, common->device ? common->device : "auto", &o));
    size_t n = (size_t)msc_graph_n_outputs(bound);
    int32_t *wanted = msc_arena_array(call->arena, n + 1, sizeof *wanted);
    MSC_TRY_OUT(MSC_ALLOCATED(wanted));
    for (size_t i = 0; i < n; i++) {
        wanted[i] = msc_graph_output(bound, (int32_t)i);
    }
    status = msc_plan_create(&plan, bound, backend, wanted, n);
    bound = NULL; // the plan owns it, also on failure
    MSC_TRY_OUT(status);
    if (common->json) {
        status = print_placement_json(plan);
        goto out;
    }
    write_placement(&text, plan);
    status = msc_cli_print_str(&text);
out:
    msc_str_finish(&text);
    msc_plan_destroy(plan);
    msc_graph_destroy(bound);
    msc_backend_close(backend);
    return status;
}
