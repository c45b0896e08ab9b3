// Every allocation of each scenario fails once: the n-th call returns NULL for n = 1, 2, ... until
// the scenario succeeds. Each failure must return MSC_E_NOMEM and leave nothing allocated. The
// linker redirects the library's allocation functions to this file; cJSON's allocation hooks point
// here too.
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/param.h"
#include "base/str.h"
#include "tests/msc_test.h"
#include "tests/short_memory.h"

#include <limits.h>
#include <unistd.h>

static enum msc_status grow_text(void) {
    struct msc_str s = {0};
    for (int i = 0; i < 100; i++) {
        msc_str_printf(&s, "%d ", i);
        msc_str_double(&s, i / 3.0);
    }
    char *text = NULL;
    enum msc_status status = msc_str_take(&text, &s);
    msc_free(text);
    return status;
}

static enum msc_status fill_arena(void) {
    enum msc_status status = MSC_OK;
    struct msc_arena arena = {0};
    for (int i = 0; i < 20; i++) {
        if (!msc_arena_printf(&arena, "%d", i) || !msc_arena_array(&arena, 500, 8)) {
            status = MSC_E_NOMEM;
        }
    }
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status plain_blocks(void) {
    void *blocks[] = {msc_alloc(10), msc_alloc_zero(10, 3), msc_strdup("text")};
    void *aligned = msc_alloc_aligned(100);
    enum msc_status status = aligned ? MSC_OK : MSC_E_NOMEM;
    for (size_t i = 0; i < 3; i++) {
        status = blocks[i] ? status : MSC_E_NOMEM;
        msc_free(blocks[i]);
    }
    msc_free_aligned(aligned);
    return status;
}

static enum msc_status read_and_write_json(void) {
    static const char text[] = "{\"a\":[1,2.5,\"text\",{\"b\":null,\"c\":true}],\"d\":\"\\u00e9\"}";
    enum msc_status status = MSC_OK;
    struct msc_str s = {0};
    cJSON *tree = NULL;
    MSC_TRY_OUT(msc_json_parse(&tree, text, sizeof text - 1, "t"));
    MSC_TRY_OUT(msc_json_add_text(tree, "t", "x"));
    MSC_TRY_OUT(msc_json_add_number(tree, "n", 1));
    MSC_TRY_OUT(msc_json_add_bool(tree, "f", true));
    MSC_TRY_OUT(msc_json_add_u64_text(tree, "u", 7));
    MSC_TRY_OUT(msc_json_push(cJSON_GetObjectItem(tree, "a"), cJSON_CreateString("y")));
    msc_json_write_pretty(&s, tree);
    MSC_TRY_OUT(msc_str_status(&s));
out:
    cJSON_Delete(tree);
    msc_str_finish(&s);
    return status;
}

static enum msc_status read_and_write_params(void) {
    struct target {
        const char *name;
        int mode;
        int64_t big;
        const struct cJSON *any;
    } target;
    static const struct msc_param params[] = {
        {.name = "name", .offset = offsetof(struct target, name), .type = MSC_PARAM_TEXT},
        {.name = "mode",
         .offset = offsetof(struct target, mode),
         .type = MSC_PARAM_ENUM,
         .text = "a",
         .names = "a|b"},
        {.name = "big", .offset = offsetof(struct target, big), .type = MSC_PARAM_I64},
        {.name = "any", .offset = offsetof(struct target, any), .type = MSC_PARAM_JSON},
        {0},
    };
    static const char text[] = "{\"name\":\"n\",\"mode\":\"b\",\"big\":\"4611686018427387905\","
                               "\"any\":[1]}";
    enum msc_status status = MSC_OK;
    struct msc_arena arena = {0};
    cJSON *tree = NULL;
    cJSON *written = cJSON_CreateObject();
    msc_param_defaults(params, &target);
    MSC_TRY_OUT(msc_json_parse(&tree, text, sizeof text - 1, "t"));
    MSC_TRY_OUT(msc_param_read(params, &target, tree, "t", NULL, &arena));
    MSC_TRY_OUT(msc_param_write(params, &target, written));
out:
    cJSON_Delete(tree);
    cJSON_Delete(written);
    msc_arena_finish(&arena);
    return status;
}

static enum msc_status write_and_read_file(void) {
    enum msc_status status = MSC_OK;
    char *data = NULL;
    size_t n_bytes = 0;
    MSC_TRY_OUT(msc_file_make_folders("memory_test"));
    MSC_TRY_OUT(msc_file_write("memory_test/x", "text", 4));
    MSC_TRY_OUT(msc_file_read(&data, &n_bytes, "memory_test/x"));
out:
    msc_free(data);
    return status;
}

static void test_base_memory__texts(void **state) {
    (void)state;
    run_failing(grow_text, 3);
    run_failing(fill_arena, 3);
    run_failing(plain_blocks, 3);
}

static void test_base_memory__json(void **state) {
    (void)state;
    cJSON_Hooks hooks = {.malloc_fn = __wrap_malloc, .free_fn = __wrap_free};
    cJSON_InitHooks(&hooks);
    run_failing(read_and_write_json, 20);
    run_failing(read_and_write_params, 10);
    cJSON_InitHooks(NULL);
}

// One failure may be ignored: building the folder's name for the final sync. So this scenario
// accepts MSC_OK after a failed allocation.
static void test_base_memory__files(void **state) {
    (void)state;
    for (int n = 1; n < 100; n++) {
        int before = n_live;
        n_until_failure = n;
        enum msc_status status = write_and_read_file();
        bool failed = n_until_failure <= 0;
        n_until_failure = INT_MAX;
        assert_int_equal(n_live, before);
        assert_true(status == MSC_OK || status == MSC_E_NOMEM);
        if (!failed) {
            assert_ok(status);
            assert_true(n > 4);
            break;
        }
    }
    assert_ok(msc_file_remove("memory_test/x"));
    assert_int_equal(rmdir("memory_test"), 0); // succeeds only if no temporary file is left
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_memory__texts),
        cmocka_unit_test(test_base_memory__json),
        cmocka_unit_test(test_base_memory__files),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
