// Sinks that need only distances from references: they get the same numbers, whether the backend
// compares the values or the sink does.
#include "eval_bench.h"

#include "base/alloc.h"

enum { MOST_SAMPLES = 2, N_COMPARED_TRIALS = 12 };

// Distances of each trial from trial 0.
struct distances {
    struct eval_bench *b;
    int left_out_batch; // the sink wants the values of this batch; -1: none
    double squares[N_COMPARED_TRIALS][EVAL_MAX_BATCHES][EVAL_MAX_WANTED][MOST_SAMPLES];
    int n_batches, n_squares; // calls of `batch` and of `squares`
};

static const struct msc_array *reference_of(const struct distances *d, size_t batch, size_t index) {
    return d->b->results.values[0][batch][index];
}

static int64_t n_samples(const struct distances *d, size_t batch) {
    return msc_dataset_batch_samples(d->b->c.data, batch);
}

static int64_t n_elements(const struct distances *d, size_t batch, size_t index) {
    int64_t n = msc_array_n_elements(reference_of(d, batch, index));
    assert_int_equal(n % n_samples(d, batch), 0);
    return n / n_samples(d, batch);
}

static bool refer(void *payload, size_t batch, int32_t index, struct msc_eval_reference *out) {
    const struct distances *d = payload;
    *out =
        (struct msc_eval_reference){.values = msc_array_data(reference_of(d, batch, (size_t)index)),
                                    .n_samples = n_samples(d, batch),
                                    .n = n_elements(d, batch, (size_t)index),
                                    .key = {.low = 77, .high = (uint64_t)index}};
    return (int)batch != d->left_out_batch;
}

// The sums of squared differences, with one sum for each remainder of the index.
static double plain_squares(const float y[], const float z[], int64_t n) {
    double sums[8] = {0};
    for (int64_t i = 0; i < n; i++) {
        double difference = (double)y[i] - (double)z[i];
        sums[i % 8] += difference * difference;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static enum msc_status compare_values(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]) {
    struct distances *d = payload;
    for (size_t i = 0; i < d->b->c.n_wanted; i++) {
        int64_t n = n_elements(d, batch, i);
        const float *y = msc_array_data(reference_of(d, batch, i)), *z = values[i].data;
        for (int64_t s = 0; s < n_samples(d, batch); s++) {
            d->squares[trial][batch][i][s] = plain_squares(y + s * n, z + s * n, n);
        }
    }
    d->n_batches++;
    return MSC_OK;
}

static enum msc_status take_squares(void *payload, size_t trial, size_t batch,
                                    const double *const squares[]) {
    struct distances *d = payload;
    for (size_t i = 0; i < d->b->c.n_wanted; i++) {
        for (int64_t s = 0; s < n_samples(d, batch); s++) {
            d->squares[trial][batch][i][s] = squares[i][s];
        }
    }
    d->n_squares++;
    return MSC_OK;
}

// The distances computed from values that another evaluator gave.
static void check_squares(const struct distances *d) {
    const struct eval_bench *b = d->b;
    for (size_t t = 0; t < N_COMPARED_TRIALS; t++) {
        for (size_t batch = 0; batch < msc_dataset_n_batches(b->c.data); batch++) {
            for (size_t i = 0; i < b->c.n_wanted; i++) {
                int64_t n = n_elements(d, batch, i);
                const float *y = msc_array_data(reference_of(d, batch, i));
                const float *z = msc_array_data(b->results.values[t][batch][i]);
                for (int64_t s = 0; s < n_samples(d, batch); s++) {
                    double expected = plain_squares(y + s * n, z + s * n, n);
                    assert_true(d->squares[t][batch][i][s] == expected);
                }
            }
        }
    }
}

static void test_kernels_evaluator_compare__squares(void **state) {
    enum { N_BATCHES = 3, ALL = N_COMPARED_TRIALS * N_BATCHES };
    static const struct {
        uint64_t memory_bytes;
        int64_t most_compared; // elements
        bool lacks_memory;
        int left_out_batch;
        int n_batches;
    } rows[] = {
        {(uint64_t)1 << 30, INT64_MAX, false, -1, 0},
        {(uint64_t)1 << 30, INT64_MAX, false, 1, N_COMPARED_TRIALS},
        {(uint64_t)1 << 30, 20, false, -1, ALL}, // some of the tensors are too large
        {(uint64_t)1 << 30, INT64_MAX, true, -1, ALL},
        {0, INT64_MAX, false, -1, ALL}, // no memory for references
    };
    static struct distances d;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct eval_bench b;
        eval_open_bench(&b);
        fake_compare_values(&b.fake);
        eval_open_net(&b.c, 5, 2);
        eval_draw_all(&b);
        struct msc_evaluator *plain = eval_create(&b, 1, (uint64_t)1 << 30);
        assert_ok(eval_run(plain, &b.results, b.edits, b.trials, N_COMPARED_TRIALS));
        b.fake.most_compared = rows[i].most_compared;
        b.fake.lacks_memory_to_compare = rows[i].lacks_memory;
        b.ev = eval_create(&b, 1, rows[i].memory_bytes);
        d = (struct distances){.b = &b, .left_out_batch = rows[i].left_out_batch};
        const struct msc_sink sink = {
            .batch = compare_values, .reference = refer, .squares = take_squares, .payload = &d};
        // The second run finds the references in the cache.
        for (int run = 1; run <= 2; run++) {
            memset(d.squares, 0xff, sizeof(d.squares));
            int n_waits = b.fake.n_waits;
            assert_ok(msc_evaluator_run(b.ev, b.trials, N_COMPARED_TRIALS, &sink, 0));
            check_squares(&d);
            assert_int_equal(d.n_batches + d.n_squares, run * ALL);
            // Values that are read back together with values that must be given are given, too.
            if (rows[i].left_out_batch >= 0) {
                assert_true(d.n_batches >= run * rows[i].n_batches && d.n_squares > 0);
            } else {
                assert_int_equal(d.n_batches, run * rows[i].n_batches);
            }
            assert_int_equal(b.fake.n_waits > n_waits, rows[i].n_batches > 0);
        }
        assert_int_equal(b.fake.n_compared, d.n_squares * (int)b.c.n_wanted);
        msc_evaluator_destroy(plain);
        eval_close_bench(&b);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_evaluator_compare__squares),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
