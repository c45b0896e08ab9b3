// Edited weights that dynamic-shape tails share. They are reused, and released if they exceed a
// memory limit. Expected numbers are worked out by hand.
#include "kernels/engine/remainder_store.h"
#include "tests/msc_test.h"

enum { N = 4 };

static struct msc_array *weight_of(float first) {
    const float values[N] = {first, -0.26f, 0.74f, 9.0f};
    struct msc_array *w;
    assert_ok(msc_array_create_from(&w, MSC_DTYPE_F32, 1, (const int64_t[]){N}, values));
    return w;
}

static const int32_t zero;
static const float scales[2] = {0.5f, 0.25f};

static struct msc_edit edit_of(int index) {
    return msc_edit_quantize((struct msc_quant){.bits = 3,
                                                .low = -3,
                                                .high = 3,
                                                .axis = -1,
                                                .n = 1,
                                                .scales = &scales[index],
                                                .zero_points = &zero});
}

static struct msc_array *get(struct msc_remainder_store *store, const struct msc_array *w,
                             int index) {
    struct msc_edit edit = edit_of(index);
    struct msc_array *edited;
    assert_ok(msc_remainder_store_get(&edited, store, w, &edit));
    return edited;
}

// The same weight with the same edit is made only once. With another edit, or for another weight,
// it is made separately.
static void test_kernels_remainder_store__shares(void **state) {
    static const float expected[2][N] = {{1.0f, -0.5f, 0.5f, 1.5f}, {0.75f, -0.25f, 0.75f, 0.75f}};
    struct msc_remainder_store store;
    (void)state;
    msc_remainder_store_init(&store);
    store.limit_bytes = 1000;
    struct msc_array *w = weight_of(1.1f), *other = weight_of(1.1f);
    struct msc_array *a = get(&store, w, 0), *b = get(&store, w, 1), *c = get(&store, other, 0);
    assert_memory_equal(msc_array_data(a), expected[0], sizeof(expected[0]));
    assert_memory_equal(msc_array_data(b), expected[1], sizeof(expected[1]));
    assert_ptr_not_equal(a, c);
    for (int i = 0; i < 3; i++) {
        struct msc_array *again = get(&store, w, 0);
        assert_ptr_equal(again, a);
        msc_array_release(again);
    }
    assert_int_equal(store.n_made, 3);
    assert_int_equal(store.held_bytes, 3 * N * sizeof(float));
    msc_array_release(a);
    msc_array_release(b);
    msc_array_release(c);
    msc_remainder_store_drop(&store);
    assert_int_equal(store.held_bytes, 0);
    msc_array_release(get(&store, w, 0));
    assert_int_equal(store.n_made, 4);
    msc_remainder_store_finish(&store);
    msc_array_release(w);
    msc_array_release(other);
}

// There is room for two weights: the third replaces the least recently used one. If there is no
// room, nothing is kept.
static void test_kernels_remainder_store__limit(void **state) {
    struct msc_remainder_store store;
    struct msc_array *w[3];
    (void)state;
    msc_remainder_store_init(&store);
    for (int i = 0; i < 3; i++) {
        w[i] = weight_of((float)i);
    }
    for (int i = 0; i < 2; i++) {
        msc_array_release(get(&store, w[0], 0));
    }
    assert_int_equal(store.n_made, 2);
    assert_int_equal(store.held_bytes, 0);
    store.limit_bytes = 2 * N * sizeof(float);
    static const int uses[] = {0, 1, 0, 2, 0, 1};
    static const int made[] = {3, 4, 4, 5, 5, 6};
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        msc_array_release(get(&store, w[uses[i]], 0));
        assert_int_equal(store.n_made, made[i]);
        assert_true(store.held_bytes <= store.limit_bytes);
    }
    // Memory freed by the store does not count as the caller's.
    struct msc_array_meter meter = {0};
    msc_array_measure(&meter);
    msc_array_release(get(&store, w[2], 0));
    assert_ptr_equal(msc_array_measure(NULL), &meter);
    assert_int_equal(meter.held_bytes, N * sizeof(float));
    msc_remainder_store_finish(&store);
    for (int i = 0; i < 3; i++) {
        msc_array_release(w[i]);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_remainder_store__shares),
        cmocka_unit_test(test_kernels_remainder_store__limit),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
