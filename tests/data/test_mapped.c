// Arrays over parts of files: their elements, damaged files, and how much stays in memory.
#include "data/array.h"
#include "data/mapped.h"

#include "data_test.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void test_data_mapped__elements(void **state) {
    enum { N = 5000, OFFSET = 12 };
    static char bytes[OFFSET + N * sizeof(float)];
    static float values[N];
    struct msc_array *mapped = NULL, *own = NULL, *rows = NULL, *converted = NULL;
    const int64_t dims[2] = {N / 4, 4};
    (void)state;
    for (int i = 0; i < N; i++) {
        values[i] = (float)i * 0.5f;
    }
    memcpy(bytes + OFFSET, values, sizeof values);
    assert_int_equal(msc_file_write("mapped_a", bytes, sizeof bytes), MSC_OK);
    assert_int_equal(msc_array_create_mapped(&mapped, MSC_DTYPE_F32, 2, dims, "mapped_a", OFFSET),
                     MSC_OK);
    assert_int_equal(msc_array_create_from(&own, MSC_DTYPE_F32, 2, dims, values), MSC_OK);
    assert_memory_equal(msc_array_data(mapped), values, sizeof values);
    assert_true(msc_hash_equal(msc_array_hash(mapped), msc_array_hash(own)));
    assert_true(msc_hash_equal(msc_array_hash(mapped), msc_array_hash(own)));
    // The file may be replaced or removed: the array keeps its elements.
    assert_int_equal(msc_file_write("mapped_a", "", 0), MSC_OK);
    assert_int_equal(msc_array_rows(&rows, mapped, 10, 1), MSC_OK);
    assert_true(msc_array_get_double(rows, 1) == 20.5);
    assert_int_equal(msc_array_convert(&converted, mapped, MSC_DTYPE_I32), MSC_OK);
    assert_int_equal(msc_array_get_i64(converted, N - 1), 2499);
    msc_array_release(mapped);
    msc_array_release(own);
    msc_array_release(rows);
    msc_array_release(converted);
    assert_int_equal(msc_file_remove("mapped_a"), MSC_OK);
}

static void test_data_mapped__refused(void **state) {
    struct msc_array *a = NULL;
    const int64_t four = 4, none = 0;
    (void)state;
    assert_int_equal(msc_file_write("mapped_b", "0123456789abcdef", 16), MSC_OK);
    test_fails(msc_array_create_mapped(&a, MSC_DTYPE_F32, 1, &four, "mapped_b", 4), MSC_E_FORMAT,
               "mapped_b", "16 bytes", "at least 20", NULL);
    test_fails(msc_array_create_mapped(&a, MSC_DTYPE_F32, 1, &four, "mapped_b", UINT64_C(1) << 60),
               MSC_E_FORMAT, "mapped_b", NULL);
    test_fails(msc_array_create_mapped(&a, MSC_DTYPE_F32, 1, &four, "mapped_none", 0),
               MSC_E_NOT_FOUND, "mapped_none", NULL);
    assert_int_equal(msc_array_create_mapped(&a, MSC_DTYPE_F32, 1, &none, "mapped_b", 16), MSC_OK);
    assert_non_null(msc_array_data(a));
    msc_array_release(a);
    assert_int_equal(msc_file_remove("mapped_b"), MSC_OK);
}

// Only the arrays used last stay in memory, and the others keep their elements.
static void test_data_mapped__leaves_memory(void **state) {
    enum { N_ARRAYS = 8 };
    const int64_t n = (int64_t)MSC_MAPPED_BYTES / 4 / (int64_t)sizeof(float);
    struct msc_array *arrays[N_ARRAYS];
    struct rusage usage;
    float sum = 0;
    (void)state;
    int descriptor = open("mapped_c", O_CREAT | O_TRUNC | O_RDWR, 0600);
    assert_true(descriptor >= 0);
    for (int i = 0; i < N_ARRAYS; i++) {
        float mark = (float)(i + 1);
        off_t place = (off_t)i * n * (off_t)sizeof mark;
        assert_int_equal(pwrite(descriptor, &mark, sizeof mark, place), sizeof mark);
    }
    assert_int_equal(ftruncate(descriptor, N_ARRAYS * n * (off_t)sizeof(float)), 0);
    close(descriptor);
    for (int i = 0; i < N_ARRAYS; i++) {
        assert_int_equal(msc_array_create_mapped(&arrays[i], MSC_DTYPE_F32, 1, &n, "mapped_c",
                                                 (uint64_t)i * (uint64_t)n * sizeof(float)),
                         MSC_OK);
    }
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < N_ARRAYS; i++) {
            const float *x = msc_array_data(arrays[i]);
            for (int64_t k = 0; k < n; k += 512) {
                sum += x[k];
            }
        }
    }
    assert_true(sum == 2 * N_ARRAYS * (N_ARRAYS + 1) / 2);
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    assert_in_range(usage.ru_maxrss, 1, (MSC_MAPPED_BYTES + (64 << 20)) >> 10);
    for (int i = 0; i < N_ARRAYS; i++) {
        msc_array_release(arrays[i]);
    }
    assert_int_equal(msc_file_remove("mapped_c"), MSC_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_mapped__elements),
        cmocka_unit_test(test_data_mapped__refused),
        cmocka_unit_test(test_data_mapped__leaves_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
