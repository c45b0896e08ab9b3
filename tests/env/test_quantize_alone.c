// The losses of single choices, as features of choices, in a chain of 26 convolutions. They must
// equal the losses that the report gives on the same samples for plans in which all other tasks are
// float. Of weights only the coarsest choice is measured; the others follow from rounding errors.
#include "env/env.h"

#include "base/file.h"
#include "tests/env/quantize_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LAYERS 26
#define FLOAT_TOO "{\"choices\":[{\"bits\":8},{\"bits\":4},{\"float\":true}]}"
// The feature's samples for this configuration: 10 * 0.5 / 3, rounded down.
#define SAMPLES 1

static struct msc_graph *make_chain(void) {
    const int64_t dims[4] = {-1, 2, 6, 6};
    int32_t prims[4] = {0, MSC_NO_ID, MSC_NO_ID, MSC_NO_ID}, x;
    struct msc_graph *g;
    assert_ok(msc_graph_create(&g, "chain"));
    assert_ok(msc_graph_add_symbol(&prims[0], g, "N"));
    assert_ok(
        msc_graph_add_symbolic_input(&x, g, "x", "image", MSC_DTYPE_F32, "NCHW", 4, dims, prims));
    for (int i = 0; i < LAYERS; i++) {
        char name[16], of_weight[16];
        snprintf(name, sizeof name, "conv%d", i);
        snprintf(of_weight, sizeof of_weight, "w%d", i);
        struct msc_array *a = quantize_array(4, (const int64_t[]){2, 2, 1, 1}, (uint64_t)i + 40);
        struct msc_weight_spec weight = {"weight", MSC_NO_ID};
        assert_ok(msc_graph_add_weight(&weight.tensor, g, of_weight, NULL, "OIHW", a));
        msc_array_release(a);
        const struct msc_joint_spec spec = {.op = MSC_OP_CONV2D,
                                            .name = name,
                                            .n_inputs = 1,
                                            .inputs = &x,
                                            .n_weights = 1,
                                            .weights = &weight};
        int32_t joint;
        assert_ok(msc_graph_add_joint(&joint, g, &spec));
        x = msc_graph_joint(g, joint)->outputs[0];
    }
    assert_ok(msc_graph_set_outputs(g, 1, &x));
    assert_ok(msc_graph_finalize(g));
    return g;
}

static double feature_of(const struct bench *b, size_t task, uint32_t choice, const char *name) {
    const struct msc_space *space = msc_env_space(b->env);
    for (size_t i = 0; i < space->n_choice_features; i++) {
        if (strcmp(space->choice_feature_names[i], name) == 0) {
            return space->tasks[task].choice_features[choice * space->n_choice_features + i];
        }
    }
    return fail(), NAN;
}

static double feature(const struct bench *b, size_t task, uint32_t choice) {
    return feature_of(b, task, choice, "distill_loss");
}

static double report_loss(const struct bench *b, const uint32_t choices[]) {
    const cJSON *validation;
    cJSON *report;
    assert_ok(msc_env_reevaluate(b->env, choices, MSC_REEVALUATE_VALIDATION, &report));
    assert_ok(msc_json_get_object(&validation, report, "validation", "report"));
    double loss = cJSON_GetObjectItemCaseSensitive(validation, "distill_loss")->valuedouble;
    cJSON_Delete(report);
    return loss;
}

struct alone_case {
    struct bench b;
    struct msc_dataset *first;
    char folder[32], path[64];
};

static void open_case(struct alone_case *c) {
    *c = (struct alone_case){.folder = "/tmp/msc_alone_XXXXXX"};
    prepare_bench_of(&c->b, make_chain(), "generic");
    assert_non_null(mkdtemp(c->folder));
    snprintf(c->path, sizeof c->path, "%s/record.params", c->folder);
    c->b.host.parameters_path = c->path;
    assert_ok(msc_dataset_create_part(&c->first, c->b.c.data, 0, SAMPLES));
    c->b.host.validation = c->first;
}

static void close_case(struct alone_case *c) {
    unlink(c->path);
    rmdir(c->folder);
    close_bench(&c->b);
    msc_dataset_destroy(c->first);
}

static void test_env_quantize_alone__losses(void **state) {
    uint32_t choices[2 * LAYERS + 1];
    struct alone_case c;
    (void)state;
    open_case(&c);
    assert_ok(create(&c.b, FLOAT_TOO));
    size_t n = msc_env_space(c.b.env)->n_tasks, n_weights = 0;
    assert_true(n >= 50 && n <= sizeof choices / sizeof choices[0]);
    for (size_t t = 0; t < n; t++) {
        choices[t] = 2;
    }
    for (size_t t = 0; t < n; t++) {
        double errors[2] = {feature_of(&c.b, t, 0, "weight_error"),
                            feature_of(&c.b, t, 1, "weight_error")};
        for (uint32_t k = 0; k < 2; k++) {
            choices[t] = k;
            double loss = report_loss(&c.b, choices);
            if (k == 1 || isnan(errors[0])) {
                assert_true(feature(&c.b, t, k) == loss);
            } else {
                double derived = feature(&c.b, t, 1) * errors[0] / errors[1];
                assert_true(fabs(feature(&c.b, t, 0) - derived) <= 1e-12 * derived);
                n_weights++;
            }
        }
        choices[t] = 2;
        assert_true(feature(&c.b, t, 1) > 0.0 && feature(&c.b, t, 2) == 0.0);
    }
    assert_int_equal(n_weights, LAYERS);
    close_case(&c);
}

// The losses are read from the file, so that they stay the same under other numerics. The identity
// does not depend on them.
static void test_env_quantize_alone__file(void **state) {
    struct msc_hash measured, read;
    struct alone_case c;
    double losses[2];
    (void)state;
    open_case(&c);
    assert_ok(create(&c.b, FLOAT_TOO));
    assert_ok(msc_env_identity(&measured, c.b.env));
    losses[0] = feature(&c.b, 0, 1), losses[1] = feature(&c.b, 49, 1);
    close_env(&c.b);
    c.b.host.parameters_required = true;
    assert_ok(create(&c.b, FLOAT_TOO));
    assert_true(losses[0] == feature(&c.b, 0, 1) && losses[1] == feature(&c.b, 49, 1));
    close_env(&c.b);
    // Without a file, for example in a look at a record, nothing is measured.
    c.b.host.parameters_required = false;
    c.b.host.parameters_path = NULL;
    assert_ok(create(&c.b, FLOAT_TOO));
    assert_true(isnan(feature(&c.b, 0, 1)));
    assert_ok(msc_env_identity(&read, c.b.env));
    assert_true(msc_hash_equal(measured, read));
    close_case(&c);
}

// With fourteen choices, even one sample would cost more than a quarter of a trial for each task.
static void test_env_quantize_alone__too_few_samples(void **state) {
    struct alone_case c;
    (void)state;
    open_case(&c);
    assert_ok(create(&c.b, "{\"choices\":[{\"bits\":16},{\"bits\":15},{\"bits\":14},{\"bits\":13},"
                           "{\"bits\":12},{\"bits\":11},{\"bits\":10},{\"bits\":9},{\"bits\":8},"
                           "{\"bits\":7},{\"bits\":6},{\"bits\":5},{\"bits\":4},{\"bits\":3}]}"));
    assert_true(isnan(feature(&c.b, 0, 1)));
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_quantize_alone__losses),
        cmocka_unit_test(test_env_quantize_alone__file),
        cmocka_unit_test(test_env_quantize_alone__too_few_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
