// Allocation: sizes that overflow, alignment, array growth, and arenas with their resets and
// failures. Expected values follow from the calls.
#include "base/alloc.h"

#include "tests/msc_test.h"

#include <stdio.h>

static void test_base_alloc__sizes(void **state) {
    (void)state;
    void *empty = msc_alloc(0);
    assert_non_null(empty);
    msc_free(empty);
    empty = msc_alloc_zero(0, 8);
    assert_non_null(empty);
    msc_free(empty);
    // The products wrap around to small numbers, so an unchecked multiplication would succeed.
    volatile size_t huge = SIZE_MAX / 2 + 2;
    assert_null(msc_alloc_zero(huge, 2));
    assert_null(msc_realloc(NULL, huge, 2));
    assert_null(msc_alloc_aligned(SIZE_MAX - 3));
    msc_free(NULL);

    char *copy = msc_strdup("abc");
    assert_string_equal(copy, "abc");
    copy = msc_realloc(copy, 100, 1);
    assert_string_equal(copy, "abc");
    msc_free(copy);
}

static void test_base_alloc__aligned(void **state) {
    (void)state;
    for (size_t n_bytes = 0; n_bytes < 200; n_bytes += 7) {
        unsigned char *data = msc_alloc_aligned(n_bytes);
        assert_non_null(data);
        assert_int_equal((uintptr_t)data % 64, 0);
        memset(data, 1, n_bytes);
        msc_free_aligned(data);
    }
    msc_free_aligned(NULL);
}

static void test_base_alloc__grow(void **state) {
    (void)state;
    int *array = NULL;
    size_t capacity = 0;
    size_t n_moves = 0;
    for (size_t n = 0; n < 1000; n++) {
        size_t before = capacity;
        assert_ok(msc_grow(&array, &capacity, n + 1, sizeof *array));
        assert_true(capacity > n);
        if (capacity != before) {
            assert_true(capacity >= 2 * before);
            n_moves++;
        }
        array[n] = (int)n;
    }
    assert_in_range(n_moves, 1, 10);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(array[i], i);
    }
    size_t before = capacity;
    int *same = array;
    assert_int_equal(msc_grow(&array, &capacity, SIZE_MAX / 2, sizeof *array), MSC_E_NOMEM);
    assert_ptr_equal(array, same);
    assert_int_equal(capacity, before);
    msc_free(array);
}

static void test_base_alloc__arena_objects(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    unsigned char *objects[500];
    size_t used = 0;
    for (size_t i = 0; i < 500; i++) {
        size_t n_bytes = i * 37 % 900;
        objects[i] = msc_arena_alloc(&arena, n_bytes);
        assert_non_null(objects[i]);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        for (size_t j = 0; j < n_bytes; j++) {
            assert_int_equal(objects[i][j], 0);
        }
        memset(objects[i], (int)(i % 251), n_bytes);
        used += n_bytes;
    }
    assert_int_equal(arena.used_bytes, used);
    for (size_t i = 0; i < 500; i++) {
        for (size_t j = 0; j < i * 37 % 900; j++) {
            assert_int_equal(objects[i][j], i % 251);
        }
    }
    msc_arena_finish(&arena);
    assert_null(arena.blocks);
    assert_int_equal(arena.used_bytes, 0);
    msc_arena_finish(&arena);
}

static void test_base_alloc__arena_texts(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    assert_string_equal(msc_arena_strdup(&arena, "joint"), "joint");
    assert_string_equal(msc_arena_strndup(&arena, "joint", 3), "joi");
    assert_string_equal(msc_arena_strndup(&arena, NULL, 0), "");
    assert_string_equal(msc_arena_printf(&arena, "%s:%d", "conv", 7), "conv:7");
    assert_null(msc_arena_array(&arena, SIZE_MAX / 4, 8));
    assert_null(msc_arena_alloc(&arena, SIZE_MAX - 1));
    char *large = msc_arena_array(&arena, 3, 1 << 20);
    assert_non_null(large);
    memset(large, 1, 3 << 20);
    msc_arena_finish(&arena);
}

// After a reset the arena reuses its largest block: memory is zeroed and no block is allocated.
static void test_base_alloc__arena_reset(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    msc_arena_reset(&arena);
    for (int i = 0; i < 100; i++) {
        memset(msc_arena_alloc(&arena, 1000), 1, 1000);
    }
    char *large = msc_arena_alloc(&arena, 4 << 20);
    memset(large, 1, 4 << 20);
    msc_arena_alloc(&arena, 1 << 19);
    msc_arena_reset(&arena);
    assert_int_equal(arena.used_bytes, 0);
    struct msc_arena_block *kept = arena.blocks;
    assert_non_null(kept);
    char *again = msc_arena_alloc(&arena, 4 << 20);
    assert_ptr_equal(again, large);
    for (int i = 0; i < 4 << 20; i++) {
        if (again[i] != 0) {
            fail_msg("byte %d is not zero", i);
        }
    }
    assert_ptr_equal(arena.blocks, kept);
    msc_arena_finish(&arena);
}

static void test_base_alloc__arena_keeps_first_failure(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    volatile size_t huge = SIZE_MAX / 4;
    assert_non_null(msc_arena_alloc(&arena, 8));
    assert_ok(msc_arena_status(&arena));
    assert_null(msc_arena_array(&arena, huge, 1));
    assert_null(msc_arena_array(&arena, huge, 8));
    assert_non_null(msc_arena_strdup(&arena, "later"));
    assert_int_equal(msc_arena_status(&arena), MSC_E_NOMEM);
    char size[32];
    snprintf(size, sizeof size, "%zu bytes", (huge + 15) / 16 * 16);
    assert_message(size);
    msc_arena_reset(&arena);
    assert_ok(msc_arena_status(&arena));
    assert_null(msc_arena_array(&arena, huge, 8));
    assert_int_equal(msc_arena_status(&arena), MSC_E_NOMEM);
    msc_arena_finish(&arena);
    assert_ok(msc_arena_status(&arena));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_alloc__sizes),
        cmocka_unit_test(test_base_alloc__aligned),
        cmocka_unit_test(test_base_alloc__grow),
        cmocka_unit_test(test_base_alloc__arena_objects),
        cmocka_unit_test(test_base_alloc__arena_texts),
        cmocka_unit_test(test_base_alloc__arena_reset),
        cmocka_unit_test(test_base_alloc__arena_keeps_first_failure),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
