// Imports the conformance cases of Debian's libonnx-testdata. Each model of supported operators
// must load, with the output shapes that it declares.
#include "graph/onnx/onnx_file_internal.h"

#include "tests/graph/onnx_files.h"

#include "base/alloc.h"
#include "base/file.h"

#include <dirent.h>

#define CASES "/usr/share/libonnx-testdata/data/node"

// Messages of accepted refusals: features that the importer does not support.
static const char *const reasons[] = {
    "unsupported operator",
    "has the unsupported type string",
    "is not a tensor with a known number",
    "spatial axes, expected 2", // 1-D and 3-D pooling and transposed convolution
    "training_mode",
    "an extra output of",
    "expected 1 to 28",
    "(Cast): conversion to string",
    "(Cast): conversion to float8",
    "which only QuantizeLinear and DequantizeLinear may read",
    "(Cast): conversion to int4",
    "(Cast): conversion to uint4",
    "of 1 in the other; bind", // branches of different dimensions, chosen by an input
    "computed",                // the case has inputs for parameters that must be constant
};

static bool is_expected_refusal(void) {
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (strstr(msc_status_message(), reasons[i]) != NULL) {
            return true;
        }
    }
    return false;
}

// Returns false if the declared shape contradicts the inferred one. Dimensions that depend on the
// content of inputs are not compared.
static bool fits(const struct msc_tensor *t, const Onnx__ValueInfoProto *declared) {
    const Onnx__TensorShapeProto *shape = declared->type->tensor_type->shape;
    const char *format; // ONNX's name of a type that is narrower than its storage, else ""
    if (shape->n_dim != (size_t)t->n_dims ||
        msc_onnx_storage(declared->type->tensor_type->elem_type, &format) != t->dtype) {
        return false;
    }
    for (int i = 0; i < t->n_dims; i++) {
        bool is_number =
            shape->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (is_number && t->dims[i] >= 0 && shape->dim[i]->dim_value != t->dims[i]) {
            return false;
        }
    }
    return true;
}

struct counts {
    int fit, open, refused, wrong;
};

static void check_outputs(struct counts *counts, const struct msc_graph *g, const char *path,
                          const char *name) {
    Onnx__ModelProto *model;
    bool is_open = false, is_wrong = false;
    assert_ok(msc_onnx_model_read(&model, path));
    for (size_t i = 0; i < model->graph->n_output; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, msc_graph_output(g, (int32_t)i));
        is_open = is_open || msc_tensor_n_elements(t) < 0;
        if (!fits(t, model->graph->output[i])) {
            char text[MSC_DIMS_TEXT_BYTES];
            print_error("%s: output %zu came to %s%s\n", name, i, msc_dtype_name(t->dtype),
                        msc_dims_format(text, t->n_dims, t->dims));
            is_wrong = true;
        }
    }
    counts->open += is_open;
    counts->wrong += is_wrong;
    counts->fit += !is_open && !is_wrong;
    msc_onnx_model_free(model);
}

static void check_case(struct counts *counts, const char *name) {
    struct msc_arena arena = {0};
    struct msc_graph *g = NULL;
    const char *path = msc_arena_printf(&arena, "%s/%s/model.onnx", CASES, name);
    if (msc_onnx_load(&g, path, NULL) == MSC_OK) {
        check_outputs(counts, g, path, name);
    } else if (is_expected_refusal()) {
        counts->refused++;
    } else {
        print_error("%s\n", msc_status_message());
        counts->wrong++;
    }
    msc_graph_destroy(g);
    msc_arena_finish(&arena);
}

static void test_graph_onnx_cases__all(void **state) {
    (void)state;
    DIR *folder = opendir(CASES);
    if (folder == NULL) {
        print_message("skipped: libonnx-testdata is not installed\n");
        skip();
        return;
    }
    struct counts counts = {0};
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (strncmp(entry->d_name, "test_", 5) == 0) {
            check_case(&counts, entry->d_name);
        }
    }
    closedir(folder);
    print_message("%d cases fit, %d depend on data, %d are refused on purpose\n", counts.fit,
                  counts.open, counts.refused);
    assert_int_equal(counts.wrong, 0);
    assert_true(counts.fit >= 650);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_onnx_cases__all),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
