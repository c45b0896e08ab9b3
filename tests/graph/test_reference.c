// Runs ONNX's own node cases through the importer and the reference kernels, and further cases in
// the same form that make_cases.py made with ONNX Runtime.
//
// Each case runs as it is, and again with all inputs except the first as initialisers, because
// many operators take parameters only as constants. If a case cannot be imported either way, the
// importer's reason is printed.
#include "base/file.h"
#include "base/str.h"
#include "graph/onnx/onnx.h"
#include "graph/reference/reference.h"
#include "tests/graph/onnx_case.h"
#include "tests/msc_test.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Cases whose expected values we do not follow. Casts to bfloat16 round to nearest since ONNX
// 1.13.
static const struct {
    const char *name, *reason;
} differing[] = {
    {"test_cast_FLOAT_to_BFLOAT16", "ONNX 1.12 cut bits off instead of rounding"},
    {"test_castlike_FLOAT_to_BFLOAT16", "ONNX 1.12 cut bits off instead of rounding"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded", "ONNX 1.12 cut bits off instead of rounding"},
    {"test_qlinearmatmul_2D_int8_float16", "the expected values wrap around instead of saturating"},
    {"test_qlinearmatmul_2D_int8_float32", "the expected values wrap around instead of saturating"},
    {"test_qlinearmatmul_3D_int8_float16", "the expected values wrap around instead of saturating"},
    {"test_qlinearmatmul_3D_int8_float32", "the expected values wrap around instead of saturating"},
};

struct totals {
    int cases;   // number of folders with a case
    int outside; // cases with an operator that is not in the table
    int ran;     // cases that ran in at least one way
    int runs;    // number of runs: a case may run in both ways
    int refused; // cases of known operators that the importer or a kernel refused
    int failed;
};

static bool is_in_table(const char *op) {
    for (int i = 0; i < MSC_OP_COUNT; i++) {
        if (strcmp(msc_op_info((enum msc_op)i)->onnx, op) == 0) {
            return true;
        }
    }
    return false;
}

static bool uses_only_table(const struct onnx_case *c) {
    for (int i = 0; i < c->n_ops; i++) {
        if (!is_in_table(c->ops[i])) {
            return false;
        }
    }
    return !c->has_domain;
}

// ONNX's runner allows rtol 1e-3 and atol 1e-7. Float32 sums in another order need a larger atol.
// Elements of all types other than floats must be equal.
static bool is_close(const struct msc_array *got, const struct msc_array *want, int64_t i) {
    if (!msc_dtype_is_float(msc_array_dtype(want))) {
        return msc_array_get_i64(got, i) == msc_array_get_i64(want, i);
    }
    double a = msc_array_get_double(got, i), b = msc_array_get_double(want, i);
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-5 + 1e-3 * fabs(b);
}

static bool compare(const char *name, const struct msc_array *got, const struct msc_array *want) {
    char a[MSC_DIMS_TEXT_BYTES], b[MSC_DIMS_TEXT_BYTES];
    msc_dims_format(a, msc_array_n_dims(got), msc_array_dims(got));
    msc_dims_format(b, msc_array_n_dims(want), msc_array_dims(want));
    if (msc_array_dtype(got) != msc_array_dtype(want) || strcmp(a, b) != 0) {
        print_message("FAILED %s: %s %s, expected %s %s\n", name,
                      msc_dtype_name(msc_array_dtype(got)), a,
                      msc_dtype_name(msc_array_dtype(want)), b);
        return false;
    }
    int64_t n = msc_array_n_elements(want);
    for (int64_t i = 0; i < n; i++) {
        if (!is_close(got, want, i)) {
            print_message("FAILED %s: element %lld of %s is %.9g, expected %.9g\n", name,
                          (long long)i, a, msc_array_get_double(got, i),
                          msc_array_get_double(want, i));
            return false;
        }
    }
    return true;
}

// Runs a graph on the case's first n_inputs inputs and compares all outputs.
static enum msc_status run_and_compare(bool *is_equal, const struct msc_graph *g,
                                       const struct onnx_case *c, const char *name) {
    const struct msc_array *inputs[ONNX_CASE_MAX_TENSORS] = {NULL};
    struct msc_array *got[ONNX_CASE_MAX_TENSORS];
    int32_t wanted[ONNX_CASE_MAX_TENSORS];
    *is_equal = false;
    for (int i = 0; i < c->n_inputs; i++) {
        inputs[i] = c->inputs[i].array;
    }
    if (msc_graph_n_outputs(g) != c->n_outputs) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "%d outputs, expected %d", msc_graph_n_outputs(g),
                        c->n_outputs);
    }
    for (int i = 0; i < c->n_outputs; i++) {
        wanted[i] = msc_graph_output(g, i);
    }
    MSC_TRY(msc_reference_run_graph(got, g, inputs, wanted, (size_t)c->n_outputs, NULL));
    *is_equal = true;
    for (int i = 0; i < c->n_outputs; i++) {
        *is_equal = *is_equal && compare(name, got[i], c->outputs[i].array);
        msc_array_release(got[i]);
    }
    return MSC_OK;
}

// Runs a case in one way: input `first_constant` and later inputs are initialisers.
// MSC_E_UNSUPPORTED and MSC_E_INVALID at import mean that the case cannot run in this way. After
// the import everything must succeed.
static enum msc_status run_case(bool *is_equal, const struct onnx_case *c, const char *name,
                                int first_constant) {
    char path[64];
    struct msc_graph *g = NULL;
    *is_equal = false;
    snprintf(path, sizeof(path), "graph_reference_%d.onnx", (int)getpid());
    MSC_TRY(onnx_case_write(c, path, first_constant));
    const struct msc_onnx_import_options options = {.by_text = true};
    enum msc_status status = msc_onnx_load(&g, path, &options);
    remove(path);
    if (status == MSC_OK && !msc_graph_is_bound(g)) {
        status = MSC_FAIL(MSC_E_UNSUPPORTED, "shapes depend on values");
    }
    if (status == MSC_OK) {
        status = run_and_compare(is_equal, g, c, name);
    }
    msc_graph_destroy(g);
    return status;
}

static bool has_known_types(const struct onnx_case *c) {
    for (int i = 0; i < c->n_inputs; i++) {
        if (!c->inputs[i].array) {
            return false;
        }
    }
    for (int i = 0; i < c->n_outputs; i++) {
        if (!c->outputs[i].array) {
            return false;
        }
    }
    return c->n_inputs == c->n_graph_inputs;
}

// The reason why a case's expected values are not followed, or NULL.
static const char *find_difference(const char *name) {
    for (size_t i = 0; i < sizeof(differing) / sizeof(differing[0]); i++) {
        if (strcmp(name, differing[i].name) == 0) {
            return differing[i].reason;
        }
    }
    return NULL;
}

static void add_case(struct totals *t, const char *folder, const char *name) {
    struct onnx_case c;
    t->cases++;
    if (find_difference(name)) {
        print_message("not run %s: %s\n", name, find_difference(name));
        t->refused++;
        return;
    }
    bool is_loaded = onnx_case_load(&c, folder);
    if (!is_loaded || !uses_only_table(&c)) {
        t->outside++;
        onnx_case_finish(&c);
        return;
    }
    if (!has_known_types(&c)) {
        print_message("not run %s: inputs or outputs are no tensors of our types\n", name);
        t->refused++;
        onnx_case_finish(&c);
        return;
    }
    int ways = c.n_inputs > 1 ? 2 : 1, ran = 0;
    char reason[512] = "";
    for (int way = 0; way < ways; way++) {
        bool is_equal;
        enum msc_status status = run_case(&is_equal, &c, name, way == 0 ? c.n_inputs : 1);
        if (status == MSC_OK) {
            ran++;
            t->runs++;
            t->failed += !is_equal;
        } else {
            const char *text = strstr(msc_status_message(), ".onnx: ");
            snprintf(reason, sizeof(reason), "%s", text ? text + 7 : msc_status_message());
        }
    }
    t->ran += ran > 0;
    if (ran == 0) {
        print_message("not run %s: %s\n", name, reason);
        t->refused++;
    }
    onnx_case_finish(&c);
}

static int is_case_name(const struct dirent *entry) {
    return strncmp(entry->d_name, "test_", 5) == 0;
}

static void run_folder(struct totals *t, const char *folder) {
    struct dirent **entries;
    int n = scandir(folder, &entries, is_case_name, alphasort);
    for (int i = 0; i < n; i++) {
        char path[768];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        add_case(t, path, entries[i]->d_name);
        free(entries[i]);
    }
    if (n >= 0) {
        free(entries);
    }
    print_message(
        "%d cases in %s: %d ran (%d runs), %d failed, %d refused, %d of other operators\n",
        t->cases, folder, t->ran, t->runs, t->failed, t->refused, t->outside);
}

// Debian's libonnx-testdata (1.12 in Debian 12, 1.17 in Debian 13): cases of all operators.
static void test_graph_reference__onnx_node_cases(void **state) {
    struct totals t = {0};
    (void)state;
    if (MSC_ONNX_TESTDATA[0] == '\0') {
        print_message("skipped: libonnx-testdata is not installed\n");
        skip();
    }
    run_folder(&t, MSC_ONNX_TESTDATA);
    assert_int_equal(t.failed, 0);
    assert_true(t.ran >= 350);
}

// Cases that ONNX lacks, made by make_cases.py with ONNX Runtime.
static void test_graph_reference__onnxruntime_cases(void **state) {
    struct totals t = {0};
    (void)state;
    run_folder(&t, MSC_TESTS_FOLDER "/kernels/cases");
    assert_int_equal(t.failed, 0);
    assert_int_equal(t.ran, t.cases);
    assert_true(t.cases >= 50);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_reference__onnx_node_cases),
        cmocka_unit_test(test_graph_reference__onnxruntime_cases),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
