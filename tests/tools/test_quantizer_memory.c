// Calibration when memory runs out: each allocation of a calibration fails in turn. Either the
// calibration fails, or its scales equal the scales of an undisturbed calibration.
#include "quantize_case.h"

#include "tests/short_memory.h"

#include <limits.h>

#define CHOICES                                                                                    \
    "{\"choices\":[{\"bits\":8,\"observer\":\"percentile\"},{\"bits\":4,\"observer\":\"mse\"},"    \
    "{\"bits\":3,\"observer\":\"minmax\"},{\"bits\":6}]}"

static void assert_same_quants(const struct msc_quantizer *a, const struct msc_quantizer *b) {
    for (int32_t s = 0; s < msc_quantizer_sites(a)->n_sites; s++) {
        for (int32_t c = 0; c < (int32_t)msc_quantizer_n_choices(a); c++) {
            const struct msc_quant *x = msc_quantizer_quant(a, s, c);
            const struct msc_quant *y = msc_quantizer_quant(b, s, c);
            assert_true(x && y && msc_hash_equal(x->hash, y->hash));
        }
    }
}

// Calibrates with the n-th allocation refused. Returns NULL if the calibration failed. *was_refused
// reports whether there was an n-th allocation.
static struct msc_quantizer *calibrate(struct quantize_case *c, int n, bool *was_refused) {
    struct msc_quantizer *q;
    assert_ok(quantize_create(&q, c->g, CHOICES));
    msc_evaluator_drop_cache(c->ev);
    n_until_failure = n;
    enum msc_status status = msc_quantizer_calibrate(q, c->ev, NULL, NULL);
    *was_refused = n_until_failure <= 0;
    n_until_failure = INT_MAX;
    if (status != MSC_OK) {
        assert_int_equal(status, MSC_E_NOMEM);
        msc_quantizer_destroy(q);
        return NULL;
    }
    return q;
}

static void test_tools_quantizer_memory__calibrate(void **state) {
    struct quantize_case c;
    bool was_refused;
    int n_recovered = 0;
    (void)state;
    quantize_case_open(&c, 1, 2);
    struct msc_quantizer *whole = calibrate(&c, INT_MAX, &was_refused);
    assert_non_null(whole);
    was_refused = true;
    for (int n = 1; was_refused; n++) {
        struct msc_quantizer *q = calibrate(&c, n, &was_refused);
        if (q) {
            assert_same_quants(q, whole);
            n_recovered += was_refused;
        }
        msc_quantizer_destroy(q);
    }
    assert_true(n_recovered > 20); // the evaluator retried with less memory
    msc_quantizer_destroy(whole);
    quantize_case_close(&c);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tools_quantizer_memory__calibrate),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
