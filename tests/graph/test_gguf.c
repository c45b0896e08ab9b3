// Decoders read from GGUF files, against the logits of transformers
// (tests/data/files/make_gguf.py).
#include "base/alloc.h"
#include "base/file.h"
#include "data/npy.h"
#include "graph/cost.h"
#include "graph/onnx/load.h"
#include "graph/reference/reference.h"
#include "tests/msc_test.h"
#include "tests/temp_folder.h"

#include <math.h>

#define FILES MSC_TESTS_FOLDER "/data/files/"

static void check_logits(const char *path, const char *name) {
    struct msc_array_list list = {0};
    struct msc_graph *g;
    struct msc_array *logits;
    assert_ok(msc_npz_load(&list, FILES "gguf_logits.npz"));
    assert_ok(msc_graph_load(&g, path));
    assert_int_equal(msc_graph_n_inputs(g), 1);
    const struct msc_tensor *out = msc_graph_tensor(g, msc_graph_output(g, 0));
    assert_string_equal(out->alias, "logits");
    const int32_t wanted[] = {msc_graph_output(g, 0)};
    const struct msc_array *ids = msc_array_list_find(&list, "ids");
    const struct msc_array *expected = msc_array_list_find(&list, name);
    assert_ok(msc_reference_run_graph(&logits, g, &ids, wanted, 1, NULL));
    assert_int_equal(msc_array_n_elements(logits), msc_array_n_elements(expected));
    double most = 0, off = 0;
    for (int64_t i = 0; i < msc_array_n_elements(expected); i++) {
        double x = msc_array_get_double(expected, i);
        most = fmax(most, fabs(x));
        off = fmax(off, fabs(x - msc_array_get_double(logits, i)));
    }
    assert_true(off < 2e-5 * most);
    msc_array_release(logits);
    msc_graph_destroy(g);
    msc_array_list_finish(&list);
}

// `llama` has the table of tokens as matrix of its output, `qwen2` its own, and biases.
static void test_graph_gguf__logits(void **state) {
    (void)state;
    check_logits(FILES "llama.gguf", "llama");
    check_logits(FILES "qwen2.gguf", "qwen2");
}

// Weights have the names of the file, and no other weight counts as part of the model.
static void test_graph_gguf__names(void **state) {
    struct msc_graph *g;
    int n_stored = 0;
    (void)state;
    assert_ok(msc_graph_load(&g, FILES "llama.gguf"));
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        n_stored += t->data && msc_tensor_is_stored(t);
    }
    assert_int_equal(n_stored, 11);
    const char *const *others;
    struct msc_arena arena = {0};
    size_t n;
    assert_ok(msc_graph_companions(&others, &n, &arena, FILES "llama.gguf"));
    assert_int_equal(n, 0);
    msc_arena_finish(&arena);
    msc_graph_destroy(g);
}

// Writes llama.gguf to the folder with the first such bytes replaced.
static void write_change(char path[TEMP_FOLDER_BYTES + 16], const char *folder, const char *from,
                         const char *to, size_t n) {
    char *data;
    size_t n_bytes;
    assert_ok(msc_file_read(&data, &n_bytes, FILES "llama.gguf"));
    size_t at = 0;
    while (at + n < n_bytes && memcmp(data + at, from, n) != 0) {
        at++;
    }
    assert_true(at + n < n_bytes);
    memcpy(data + at, to, n);
    snprintf(path, TEMP_FOLDER_BYTES + 16, "%s/changed.gguf", folder);
    assert_ok(msc_file_write(path, data, n_bytes));
    msc_free(data);
}

// Expects a message about the changed file.
static void check_change(const char *folder, const char *from, const char *to, size_t n,
                         const char *message) {
    char path[TEMP_FOLDER_BYTES + 16];
    struct msc_graph *g;
    write_change(path, folder, from, to, n);
    assert_true(msc_graph_load(&g, path) != MSC_OK);
    assert_message(path);
    assert_message(message);
}

static void test_graph_gguf__others(void **state) {
    char folder[TEMP_FOLDER_BYTES];
    (void)state;
    temp_folder_make(folder);
    check_change(folder, "\0llama", "\0gemma", 6,
                 "the architecture \"gemma\"; GGUF is read for: llama");
    check_change(folder, "block_count", "block_amount", 11, "llama.block_count is 0, expected");
    check_change(folder, "blk.0.attn_q.w", "blk.0.attn_z.w", 14,
                 "tensor \"blk.0.attn_q.weight\" is missing");
    check_change(folder, "bos_token", "eos_token", 9,
                 "two values are called \"tokenizer.ggml.eos_token_id\"");
    check_change(folder, "tokenizer.ggml.token_type", "llama.rope.scaling.factor", 25,
                 "llama.rope.scaling.factor is not one number");
    check_change(folder, "head_count_kv\4\0\0\0\2", "head_count_kv\4\0\0\0\4", 18,
                 "tensor \"blk.0.attn_k.weight\" has 32 rows, expected 4 heads of 16");
    check_change(folder, "output_norm.weight\1\0\0\0\x40", "output_norm.weight\1\0\0\0\1", 23,
                 "tensor \"output_norm.weight\": expected 64 elements");
    temp_folder_remove(folder);
}

// llama.cpp scales positions linearly if the file has a factor, but no type of scaling.
static void test_graph_gguf__factor(void **state) {
    char folder[TEMP_FOLDER_BYTES], path[TEMP_FOLDER_BYTES + 16];
    struct msc_graph *g;
    const struct msc_tensor *found = NULL;
    (void)state;
    temp_folder_make(folder);
    write_change(path, folder, "llama.feed_forward_length", "llama.rope.scaling.factor", 25); // 256
    assert_ok(msc_graph_load(&g, path));
    for (int32_t i = 0; i < msc_graph_n_tensors(g); i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, i);
        found = t->data && strstr(t->name, "frequencies") ? t : found;
    }
    assert_non_null(found);
    for (int i = 0; i < 8; i++) {
        double expected = pow(10000, -i / 8.0) / 256;
        assert_true(fabs(msc_array_get_double(found->data, i) - expected) < 1e-6 * expected);
    }
    msc_graph_destroy(g);
    temp_folder_remove(folder);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph_gguf__logits),
        cmocka_unit_test(test_graph_gguf__names),
        cmocka_unit_test(test_graph_gguf__others),
        cmocka_unit_test(test_graph_gguf__factor),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
