// The binary heap, compared with qsort on random arrays.
#include "base/heap.h"

#include "base/rng.h"
#include "tests/msc_test.h"

#include <stdlib.h>

enum { MOST = 200 };

static bool is_less(const void *context, const void *a, const void *b) {
    const int *values = context; // many values are equal, so the index breaks ties
    int left = values[*(const size_t *)a];
    int right = values[*(const size_t *)b];
    return left != right ? left < right : *(const size_t *)a < *(const size_t *)b;
}

static const int *sorted_values;

static int compare(const void *a, const void *b) {
    return is_less(sorted_values, a, b) ? -1 : is_less(sorted_values, b, a);
}

struct sample {
    int values[MOST];
    size_t n;
    size_t expected[MOST]; // indices in order, by qsort
};

static void draw(struct sample *s, struct msc_rng *rng, size_t n) {
    s->n = n;
    for (size_t i = 0; i < n; i++) {
        s->values[i] = (int)msc_rng_below(rng, 40);
        s->expected[i] = i;
    }
    sorted_values = s->values;
    qsort(s->expected, n, sizeof s->expected[0], compare);
}

static void test_base_heap__sorts(void **state) {
    (void)state;
    struct msc_rng rng;
    msc_rng_seed(&rng, 3, 3);
    for (size_t n = 0; n <= MOST; n++) {
        struct sample s;
        size_t spare;
        size_t order[MOST];
        const struct msc_heap heap = {.elements = order,
                                      .element_bytes = sizeof order[0],
                                      .spare = &spare,
                                      .is_before = is_less,
                                      .context = s.values};
        draw(&s, &rng, n);
        for (size_t i = 0; i < n; i++) {
            order[i] = n - 1 - i;
        }
        msc_heap_sort(&heap, n);
        assert_memory_equal(order, s.expected, n * sizeof order[0]);
    }
}

static void test_base_heap__keeps_the_first(void **state) {
    (void)state;
    static const size_t rows[] = {1, 2, 7, 64, MOST, MOST + 1};
    struct msc_rng rng;
    msc_rng_seed(&rng, 4, 4);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct sample s;
        size_t spare;
        size_t kept[MOST + 1];
        size_t n_kept = 0;
        const struct msc_heap heap = {.elements = kept,
                                      .element_bytes = sizeof kept[0],
                                      .spare = &spare,
                                      .is_before = is_less,
                                      .context = s.values};
        draw(&s, &rng, MOST);
        for (size_t i = 0; i < s.n; i++) {
            size_t element = (i * 37) % MOST; // visits every element once, in scattered order
            msc_heap_offer(&heap, &n_kept, rows[r], &element);
        }
        assert_int_equal(n_kept, rows[r] < MOST ? rows[r] : MOST);
        msc_heap_sort(&heap, n_kept);
        assert_memory_equal(kept, s.expected, n_kept * sizeof kept[0]);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_heap__sorts),
        cmocka_unit_test(test_base_heap__keeps_the_first),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
