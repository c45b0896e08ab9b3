// Plans: fused groups, layouts and aliases, hashes, and errors. Expected steps are worked out by
// hand for the network of eval_case.h.
#include "eval_case.h"
#include "fake_backend.h"
#include "graph/passes/bind.h"
#include "kernels/engine/planner.h"

#include <stdio.h>

// Requirements on every plan. A step comes after the steps that it reads from. Each value is made
// once, by the step recorded as its maker.
static void check_plan(const struct msc_plan *plan) {
    for (int32_t i = 0; i < plan->n_steps; i++) {
        const struct msc_step *s = &plan->steps[i];
        for (int32_t k = 0; k < s->n_inputs; k++) {
            assert_true(plan->values[s->inputs[k]].step < i);
        }
        for (int32_t k = 0; k < s->n_outputs; k++) {
            assert_int_equal(plan->values[s->outputs[k]].step, i);
            assert_int_equal(plan->values[s->outputs[k]].output, k);
        }
        for (int32_t k = 0; k < s->n_joints; k++) {
            for (int32_t o = 0; o < s->joints[k].n_operands; o++) {
                const struct msc_operand *operand = &s->joints[k].operands[o];
                assert_true(operand->kind != MSC_OPERAND_INNER || operand->index < k);
                assert_true(operand->kind != MSC_OPERAND_INPUT || operand->index < s->n_inputs);
            }
        }
    }
    for (int32_t i = 0; i < plan->n_wanted; i++) {
        assert_int_equal(plan->values[plan->live_out[i]].layout, MSC_LAYOUT_NCHW);
    }
    for (int32_t i = 0; i < plan->sites.n_slots; i++) {
        const struct msc_slot *slot = &plan->sites.slots[i];
        int32_t value = plan->slot_values[i];
        assert_int_equal(value == MSC_NO_ID, slot->kind == MSC_SITE_WEIGHT);
        if (value != MSC_NO_ID) {
            assert_int_equal(plan->values[value].tensor, slot->tensor);
        }
    }
}

static struct msc_graph *bound(const struct eval_case *c) {
    struct msc_graph *g;
    assert_ok(msc_graph_bind(&g, c->g, &(struct msc_binding){"N", 2}, 1));
    return g;
}

static struct msc_plan *make_plan(const struct eval_case *c, struct fake_backend *fake,
                                  size_t n_wanted) {
    struct msc_graph *g = bound(c);
    int32_t wanted[EVAL_MAX_WANTED];
    struct msc_plan *plan;
    for (size_t i = 0; i < n_wanted; i++) {
        wanted[i] = msc_graph_find_tensor(g, msc_graph_tensor(c->g, c->wanted[i])->name);
    }
    assert_ok(msc_plan_create(&plan, g, &fake->base, wanted, n_wanted));
    check_plan(plan);
    return plan;
}

static const struct msc_step *step_of(const struct msc_plan *plan, const char *joint) {
    for (int32_t i = 0; i < plan->n_steps; i++) {
        for (int32_t k = 0; k < plan->steps[i].n_joints; k++) {
            if (strcmp(plan->steps[i].joints[k].joint->name, joint) == 0) {
                return &plan->steps[i];
            }
        }
    }
    fail_msg("no step holds %s", joint);
    return NULL;
}

// Checks that the joints of a step are `expected`, such as "conv+relu".
static void assert_step(const struct msc_plan *plan, const char *joint, const char *expected) {
    const struct msc_step *s = step_of(plan, joint);
    char text[200] = "";
    size_t n = 0;
    for (int32_t k = 0; k < s->n_joints; k++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", k > 0 ? "+" : "",
                              s->joints[k].joint->name);
    }
    assert_string_equal(text, expected);
}

static int count_steps(const struct msc_plan *plan, enum msc_step_kind kind) {
    int n = 0;
    for (int32_t i = 0; i < plan->n_steps; i++) {
        n += plan->steps[i].kind == kind;
    }
    return n;
}

// ---- Groups -----------------------------------------------------------------------------------

static void test_kernels_plan__fuses_what_is_closed(void **state) {
    struct fake_backend fake;
    struct eval_case c;
    (void)state;
    fake_open(&fake, 1);
    eval_open_net(&c, 2, 2);
    struct msc_plan *plan = make_plan(&c, &fake, 2);
    // The hard swish reads the convolution twice, and both uses are inside the group.
    assert_step(plan, "wide", "wide+plus_three+clip+gate+swish+scaled");
    assert_step(plan, "conv2", "conv2+residual");
    assert_step(plan, "conv1", "conv1+inner");
    assert_step(plan, "stem", "stem+stem_relu");
    // Joints that are not element-wise are not fused. Element-wise joints after a joint that cannot
    // be fused are not fused either.
    assert_step(plan, "softmax", "softmax");
    assert_step(plan, "split", "split");
    const struct msc_step *wide = step_of(plan, "wide");
    assert_int_equal(plan->sites.slots[wide->weight_slots[0]].operand, 1);
    assert_int_equal(wide->n_inputs, 1);
    assert_int_not_equal(wide->slots[0], MSC_NO_ID);
    // Two samples of 6 x 6, from 4 to 8 channels, 3 x 3 kernels.
    assert_true(wide->macs == 2.0 * 36 * 8 * 4 * 9);
    // The residual is read without a slot. The convolution's input is read through a slot.
    const struct msc_step *residual = step_of(plan, "conv2");
    assert_int_equal(residual->n_inputs, 2);
    assert_int_not_equal(residual->slots[0], MSC_NO_ID);
    assert_int_equal(residual->slots[1], MSC_NO_ID);
    msc_plan_destroy(plan);
    eval_close(&c);
    fake_close(&fake);
}

static void test_kernels_plan__wanted_tensor_ends_a_group(void **state) {
    struct fake_backend fake;
    struct eval_case c;
    (void)state;
    fake_open(&fake, 1);
    eval_open_net(&c, 2, 2);
    struct msc_plan *plan = make_plan(&c, &fake, 3);
    assert_step(plan, "wide", "wide");
    assert_step(plan, "plus_three", "plus_three");
    assert_step(plan, "clip", "clip+gate+swish+scaled");
    msc_plan_destroy(plan);
    eval_close(&c);
    fake_close(&fake);
}

static void test_kernels_plan__backend_may_refuse_to_fuse(void **state) {
    struct fake_backend fake;
    struct eval_case c;
    (void)state;
    fake_open(&fake, 1);
    fake.fuses = false;
    eval_open_net(&c, 2, 2);
    struct msc_plan *plan = make_plan(&c, &fake, 2);
    for (int32_t i = 0; i < plan->n_steps; i++) {
        assert_int_equal(plan->steps[i].n_joints, 1);
    }
    // 23 joints; the input and three constants are not steps.
    assert_int_equal(msc_graph_n_joints(plan->graph), 23);
    assert_int_equal(plan->n_steps, 19);
    msc_plan_destroy(plan);
    eval_close(&c);
    fake_close(&fake);
}

// ---- Layouts ----------------------------------------------------------------------------------

static void test_kernels_plan__layouts_and_aliases(void **state) {
    struct fake_backend fake;
    struct eval_case c;
    (void)state;
    fake_open(&fake, 1);
    eval_open_net(&c, 2, 2);
    struct msc_plan *plan = make_plan(&c, &fake, 2);
    assert_int_equal(count_steps(plan, MSC_STEP_REORDER), 0);
    assert_int_equal(count_steps(plan, MSC_STEP_ALIAS), 1);
    assert_int_equal(step_of(plan, "flat")->kind, MSC_STEP_ALIAS);
    msc_plan_destroy(plan);
    // With channels-last convolutions the input is reordered once, and the last result is reordered
    // back.
    fake.uses_last = true;
    plan = make_plan(&c, &fake, 2);
    assert_int_equal(count_steps(plan, MSC_STEP_REORDER), 2);
    const struct msc_step *stem = step_of(plan, "stem");
    assert_int_equal(plan->values[stem->inputs[0]].layout, MSC_LAYOUT_NHWC);
    assert_int_equal(plan->values[stem->outputs[0]].layout, MSC_LAYOUT_NHWC);
    assert_int_equal(plan->values[step_of(plan, "split")->inputs[0]].layout, MSC_LAYOUT_NCHW);
    msc_plan_destroy(plan);
    // A wanted inner tensor is reordered back, too.
    plan = make_plan(&c, &fake, 3);
    assert_int_equal(count_steps(plan, MSC_STEP_REORDER), 2);
    msc_plan_destroy(plan);
    eval_close(&c);
    fake_close(&fake);
}

// ---- Hashes -----------------------------------------------------------------------------------

static int32_t add_conv(struct msc_graph *g, const char *name, int32_t x, int32_t w,
                        const char *padding) {
    int32_t joint;
    struct msc_joint_spec spec = {.op = MSC_OP_CONV2D,
                                  .name = name,
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = 1,
                                  .weights = &(struct msc_weight_spec){"weight", w},
                                  .n_attrs = 1,
                                  .attrs = &(struct msc_attr){"padding", padding}};
    assert_ok(msc_graph_add_joint(&joint, g, &spec));
    return msc_graph_joint(g, joint)->outputs[0];
}

static int32_t add_weight(struct msc_graph *g, const char *name, const char *layout, float value) {
    static const int64_t dims[4] = {3, 3, 1, 1};
    float x[9];
    struct msc_array *a;
    int32_t tensor;
    for (int i = 0; i < 9; i++) {
        x[i] = (float)i + value;
    }
    assert_ok(msc_array_create_from(&a, MSC_DTYPE_F32, 4, dims, x));
    assert_ok(msc_graph_add_weight(&tensor, g, name, NULL, layout, a));
    msc_array_release(a);
    return tensor;
}

// A step's hash depends on what it computes, not on names.
static void test_kernels_plan__hashes(void **state) {
    static const int64_t dims[4] = {1, 3, 4, 4};
    static const char *const names[] = {"first", "same", "padded", "other", "turned", "later"};
    struct fake_backend fake;
    struct msc_graph *g;
    struct msc_plan *plan;
    int32_t x, y[6];
    (void)state;
    fake_open(&fake, 1);
    assert_ok(msc_graph_create(&g, "main"));
    assert_ok(msc_graph_add_input(&x, g, "x", NULL, MSC_DTYPE_F32, "NCHW", 4, dims));
    int32_t w = add_weight(g, "w", "OIHW", 0);
    y[0] = add_conv(g, names[0], x, w, "0,0,0,0");
    y[1] = add_conv(g, names[1], x, add_weight(g, "copy", "OIHW", 0), "0,0,0,0");
    y[2] = add_conv(g, names[2], x, w, "1,1,1,1");
    y[3] = add_conv(g, names[3], x, add_weight(g, "other", "OIHW", 1), "0,0,0,0");
    // A weight with the same numbers but swapped axes.
    y[4] = add_conv(g, names[4], x, add_weight(g, "turned", "IOHW", 0), "0,0,0,0");
    // The same work on another value. The value numbers of the inputs differ, but the step's hash
    // is equal.
    y[5] = add_conv(g, names[5], y[0], w, "0,0,0,0");
    assert_ok(msc_graph_set_outputs(g, 6, y));
    assert_ok(msc_graph_finalize(g));
    int32_t wanted = msc_graph_output(g, 0);
    assert_ok(msc_plan_create(&plan, g, &fake.base, &wanted, 1));
    static const bool is_equal[6] = {true, true, false, false, false, true};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(
            msc_hash_equal(step_of(plan, names[0])->hash, step_of(plan, names[i])->hash),
            is_equal[i]);
    }
    msc_plan_destroy(plan);
    fake_close(&fake);
}

// ---- Errors -----------------------------------------------------------------------------------

static void test_kernels_plan__errors(void **state) {
    struct fake_backend fake;
    struct eval_case c;
    struct msc_graph *g;
    struct msc_plan *plan;
    (void)state;
    fake_open(&fake, 1);
    eval_open_net(&c, 2, 2);
    assert_ok(msc_graph_clone(&g, c.g));
    assert_int_equal(msc_plan_create(&plan, g, &fake.base, c.wanted, 1), MSC_E_INVALID);
    assert_message("symbolic dims");
    g = bound(&c);
    int32_t constant = msc_graph_find_tensor(g, "gain:0");
    assert_int_not_equal(constant, MSC_NO_ID);
    // A constant is not made by any step.
    assert_ok(msc_plan_create(&plan, g, &fake.base, &constant, 1));
    assert_int_equal(plan->live_out[0], MSC_NO_ID);
    assert_true(plan->wants_remainder);
    msc_plan_destroy(plan);
    eval_close(&c);
    fake_close(&fake);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_plan__fuses_what_is_closed),
        cmocka_unit_test(test_kernels_plan__wanted_tensor_ends_a_group),
        cmocka_unit_test(test_kernels_plan__backend_may_refuse_to_fuse),
        cmocka_unit_test(test_kernels_plan__layouts_and_aliases),
        cmocka_unit_test(test_kernels_plan__hashes),
        cmocka_unit_test(test_kernels_plan__errors),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
