// The loss on a device whose memory the host cannot read: the device compares the outputs, so that
// a trial transfers only its sums. Losses are the same as on the host. Skipped if there is no
// Vulkan device.
#include "tests/env/distill_bench.h"

#include "kernels/backend.h"

#include <stdlib.h>

enum { N_RUNS = 12, N_SAMPLES = 5 };

static double right(const struct msc_sample *s) {
    return (double)(msc_sample_tensor(s, 0).z[0] > 0);
}

// What the runs of a loss transfer: first with the weights that they need, then again.
struct measured {
    double losses[N_RUNS];
    struct msc_backend_transfers first, again;
};

static struct msc_backend_transfers since(struct msc_backend *b,
                                          const struct msc_backend_transfers *before) {
    const struct msc_backend_transfers now = msc_backend_get_transfers(b);
    return (struct msc_backend_transfers){
        now.to_device_bytes - before->to_device_bytes, now.to_host_bytes - before->to_host_bytes,
        now.n_submissions - before->n_submissions, now.n_waits - before->n_waits};
}

static struct msc_backend_transfers run_all(double losses[], struct distill_bench *b,
                                            const struct eval_edits edits[]) {
    struct msc_distill_run runs[N_RUNS] = {{0}};
    const struct msc_backend_transfers before = msc_backend_get_transfers(b->host.backend);
    for (int i = 0; i < N_RUNS; i++) {
        runs[i].edits = edits[i].edits;
    }
    assert_ok(msc_distill_run(b->d, runs, N_RUNS, NULL, NULL));
    for (int i = 0; i < N_RUNS; i++) {
        assert_int_equal(runs[i].status, MSC_OK);
        losses[i] = runs[i].loss;
    }
    return since(b->host.backend, &before);
}

// False: there is no device.
static bool measure(struct measured *out, bool hides_memory, const struct msc_distill_options *o) {
    struct distill_bench b = {0};
    struct eval_edits edits[N_RUNS];
    double again[N_RUNS];
    eval_open_net(&b.c, N_SAMPLES, 2);
    if (hides_memory) {
        setenv("MSC_VULKAN_STAGE", "1", 1);
    }
    enum msc_status status = distill_bench_open_on(&b, "vulkan");
    unsetenv("MSC_VULKAN_STAGE");
    if (status != MSC_OK) {
        print_message("%s\n", msc_status_message());
        eval_close(&b.c);
        return false;
    }
    b.host.memory_bytes = (uint64_t)1 << 34; // sanitizers and drivers take some of it
    for (int i = 0; i < N_RUNS; i++) {
        eval_draw_edits(&b.c, (uint64_t)i + 1, &edits[i]);
    }
    assert_ok(msc_distill_create(&b.d, &b.host, b.c.data, o));
    assert_ok(msc_distill_compute_reference(b.d));
    out->first = run_all(out->losses, &b, edits);
    out->again = run_all(again, &b, edits);
    assert_memory_equal(again, out->losses, sizeof(again));
    distill_bench_close(&b);
    return true;
}

static void test_env_distill_device__loss(void **state) {
    const char *names[] = {"softmax:0", "plus_three:0"};
    const double weights[] = {2, 1};
    const struct msc_sample_metric metric = {.sample = right};
    const struct msc_distill_options o = {
        .kind = MSC_LOSS_MSE, .tensors = names, .n_tensors = 2, .weights = weights};
    struct msc_distill_options with_metric = o;
    struct measured host, device, values;
    (void)state;
    with_metric.metrics = &metric;
    with_metric.n_metrics = 1;
    if (!measure(&host, false, &o)) {
        skip();
    }
    assert_true(measure(&device, true, &o));
    assert_true(measure(&values, true, &with_metric));
    assert_true(device.losses[0] > 0 && device.losses[0] != device.losses[1]);
    assert_memory_equal(device.losses, host.losses, sizeof(host.losses));
    assert_memory_equal(values.losses, host.losses, sizeof(host.losses));
    // Two doubles for each trial and sample, and nothing else.
    const uint64_t sums = (uint64_t)N_RUNS * N_SAMPLES * 2 * sizeof(double);
    assert_int_equal(device.again.to_host_bytes, sums);
    assert_int_equal(device.again.to_device_bytes, 0);
    // One wait for all trials, unless the device is so slow that its commands are divided.
    assert_true(device.again.n_waits < N_RUNS);
    // A metric needs the values of the outputs.
    assert_true(values.again.to_host_bytes > sums);
    assert_int_equal(values.again.to_host_bytes, host.again.to_host_bytes);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_env_distill_device__loss),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
