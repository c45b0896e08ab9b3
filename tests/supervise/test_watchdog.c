// Checks at which moment the watchdog decides that a worker hangs. The test sets the clock, so the
// right moments are known.
#include "../msc_test.h"
#include "base/cancel.h"
#include "supervise/watchdog.h"
#include "supervise/worker_page.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static void fill_page(struct msc_worker_page *page, uint64_t quiet_ns) {
    memset(page, 0, sizeof *page);
    atomic_store(&page->quiet_ns, quiet_ns);
}

// Asks the watchdog every 100 ms. Returns true if the worker is found to hang within `n_looks`
// looks.
static bool hangs(struct msc_watchdog *w, struct msc_worker_page *page, uint64_t *now_ns,
                  int n_looks) {
    for (int i = 0; i < n_looks; i++) {
        *now_ns += 100 * MS;
        if (msc_watchdog_look(w, page, *now_ns)) {
            return true;
        }
    }
    return false;
}

static void test_search_watchdog__silence(void **state) {
    (void)state;
    static struct msc_worker_page page;
    struct msc_watchdog w;
    uint64_t now_ns = 5 * S;
    const struct msc_cancel cancel = {.beats = &page.beats};
    fill_page(&page, 10 * S);
    msc_watchdog_begin(&w, &page, now_ns);
    for (int i = 0; i < 5; i++) {
        assert_false(hangs(&w, &page, &now_ns, 99));
        assert_false(msc_cancel_soon(&cancel)); // every poll is a sign of life
        assert_false(hangs(&w, &page, &now_ns, 99));
        assert_false(msc_cancel_now(&cancel));
    }
    assert_true(hangs(&w, &page, &now_ns, 110));
    fill_page(&page, 0);
    assert_false(hangs(&w, &page, &now_ns, 100000));
}

// Time in which the parent itself was stopped, or the machine slept, does not count.
static void test_search_watchdog__gaps_do_not_count(void **state) {
    (void)state;
    static struct msc_worker_page page;
    struct msc_watchdog w;
    uint64_t now_ns = 5 * S;
    fill_page(&page, 10 * S);
    msc_watchdog_begin(&w, &page, now_ns);
    atomic_store(&page.deadline_ns, now_ns + 30 * S);
    assert_false(hangs(&w, &page, &now_ns, 50));
    now_ns += 7200 * S;
    assert_false(msc_watchdog_look(&w, &page, now_ns));
    assert_int_equal(atomic_load(&page.deadline_ns), 5 * S + 30 * S + 7200 * S);
    assert_false(hangs(&w, &page, &now_ns, 45));
    assert_true(hangs(&w, &page, &now_ns, 10));
}

static void test_search_watchdog__limits(void **state) {
    (void)state;
    static struct msc_worker_page page;
    fill_page(&page, 600 * S);
    assert_int_equal(msc_watchdog_limit_ns(&page), 600 * S);
    // 7 trials of about 17 s (2^34 ns) and 5 of about 1 us.
    atomic_store(&page.trials[34], 7);
    atomic_store(&page.trials[10], 5);
    assert_int_equal(msc_watchdog_limit_ns(&page), 100 * (UINT64_C(1) << 35));
    atomic_store(&page.trials[10], 8);
    assert_int_equal(msc_watchdog_limit_ns(&page), 600 * S);
    atomic_store(&page.trials[62], 1000);
    assert_true(msc_watchdog_limit_ns(&page) == UINT64_MAX);
    atomic_store(&page.quiet_ns, 0);
    assert_int_equal(msc_watchdog_limit_ns(&page), 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_watchdog__silence),
        cmocka_unit_test(test_search_watchdog__gaps_do_not_count),
        cmocka_unit_test(test_search_watchdog__limits),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
