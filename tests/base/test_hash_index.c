// The hash index, compared with a linear search through the array.
#include "base/hash_index.h"

#include "tests/msc_test.h"

enum { N = 3000 };

struct item {
    struct msc_hash hash;
    int number;
};

static int32_t search(const struct item items[], int n, struct msc_hash hash) {
    for (int i = 0; i < n; i++) {
        if (msc_hash_equal(items[i].hash, hash)) {
            return i;
        }
    }
    return -1;
}

// Every seventh hash has the same low half as the hash before it, so both have the same slot.
static struct msc_hash hash_of(int number) {
    int low = number % 7 == 6 ? number - 1 : number;
    struct msc_hash h = msc_hash_bytes(&low, sizeof low);
    return (struct msc_hash){h.low, (uint64_t)number};
}

static void check(const struct msc_hash_index *index, const struct item items[], int n) {
    for (int number = 0; number < N; number += n % 100 == 0 ? 1 : 97) {
        struct msc_hash hash = hash_of(number);
        assert_int_equal(msc_hash_index_find(index, hash, items, sizeof items[0]),
                         search(items, n, hash));
    }
}

static void fill(struct msc_hash_index *index, struct item items[], int step) {
    for (int n = 0; n < N / 4; n++) {
        int number = n * step % N;
        items[n] = (struct item){hash_of(number), number};
        assert_ok(msc_hash_index_reserve(index, (size_t)n + 1));
        msc_hash_index_add(index, (size_t)n, items, sizeof items[0]);
        check(index, items, n + 1);
    }
}

static void test_base_hash_index__against_search(void **state) {
    (void)state;
    static struct item items[N];
    struct msc_hash_index index = {0};
    check(&index, items, 0);
    fill(&index, items, 1);
    msc_hash_index_clear(&index);
    check(&index, items, 0);
    fill(&index, items, 7);
    msc_hash_index_finish(&index);
    check(&index, items, 0);
}

// An index refuses to hold more elements than an int32 can count.
static void test_base_hash_index__too_many(void **state) {
    (void)state;
    struct item item = {hash_of(1), 1};
    struct msc_hash_index index = {0};
    assert_ok(msc_hash_index_reserve(&index, 1));
    msc_hash_index_add(&index, 0, &item, sizeof item);
    assert_int_equal(msc_hash_index_reserve(&index, (size_t)INT32_MAX + 1), MSC_E_NOMEM);
    assert_message("table of 2147483648 hashes");
    assert_int_equal(msc_hash_index_find(&index, item.hash, &item, sizeof item), 0);
    msc_hash_index_finish(&index);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_hash_index__against_search),
        cmocka_unit_test(test_base_hash_index__too_many),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
