// The file that records finished stages, with hashes of their inputs and of their output files. A
// stage is treated as done only while all of these are unchanged.
#include "tests/msc_test.h"
#include "tests/temp_folder.h"

#include "base/alloc.h"
#include "base/file.h"
#include "pipeline/stages.h"

#include <stdio.h>
#include <string.h>

struct place {
    char folder[TEMP_FOLDER_BYTES];
    char stages[TEMP_FOLDER_BYTES + 32], file[TEMP_FOLDER_BYTES + 32];
};

static struct msc_hash key(uint64_t value) {
    return (struct msc_hash){.low = value, .high = ~value};
}

static struct msc_stages *open_stages(const struct place *p, bool is_fresh) {
    struct msc_stages *s;
    assert_ok(msc_stages_open(&s, p->stages, is_fresh, NULL));
    return s;
}

static void put(struct msc_stages *s, const char *stage, uint64_t value, const char *file) {
    cJSON *result = cJSON_CreateObject();
    assert_ok(msc_json_add_number(result, "value", (double)value));
    assert_ok(msc_stages_put(s, stage, key(value), &file, 1, result));
}

static void check(const struct msc_stages *s, const char *stage, uint64_t value) {
    const cJSON *result = msc_stages_find(s, stage, key(value));
    assert_non_null(result);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(result, "value");
    assert_true(item->valuedouble == (double)value);
}

static void test_pipeline_stages__done_once(void **state) {
    const struct place *p = *state;
    struct msc_stages *s = open_stages(p, true);
    assert_null(msc_stages_find(s, "parse", key(1)));
    put(s, "parse", 1, NULL);
    put(s, "prune[0]", 2, NULL);
    check(s, "parse", 1);
    assert_null(msc_stages_find(s, "parse", key(2)));
    put(s, "parse", 3, NULL); // replaces the earlier entry
    assert_null(msc_stages_find(s, "parse", key(1)));
    msc_stages_close(s);
    s = open_stages(p, false);
    check(s, "parse", 3);
    check(s, "prune[0]", 2);
    msc_stages_close(s);
    s = open_stages(p, true);
    assert_null(msc_stages_find(s, "parse", key(3)));
    msc_stages_close(s);
}

static void test_pipeline_stages__files(void **state) {
    const struct place *p = *state;
    struct msc_stages *s = open_stages(p, true);
    assert_ok(msc_file_write(p->file, "one", 3));
    put(s, "export", 1, p->file);
    check(s, "export", 1);
    assert_ok(msc_file_write(p->file, "two", 3));
    assert_null(msc_stages_find(s, "export", key(1)));
    assert_ok(msc_file_write(p->file, "one", 3));
    check(s, "export", 1);
    assert_ok(msc_file_remove(p->file));
    assert_null(msc_stages_find(s, "export", key(1)));
    // A stage whose file does not exist cannot be recorded.
    const char *file = p->file;
    assert_int_equal(msc_stages_put(s, "export", key(2), &file, 1, cJSON_CreateObject()),
                     MSC_E_NOT_FOUND);
    msc_stages_close(s);
}

static void test_pipeline_stages__damaged(void **state) {
    const struct place *p = *state;
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "{\"schema\": \"mscgym.stages.2\", \"stages\": []}",
        "{\"schema\": \"mscgym.stages.1\", \"stages\": {}}",
        ("{\"schema\": \"mscgym.stages.1\", "
         "\"stages\": [1, {\"stage\": 2}, {\"stage\": \"parse\", \"key\": \"x\", \"files\": 3}]}"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_ok(msc_file_write(p->stages, texts[i], strlen(texts[i])));
        struct msc_stages *s = open_stages(p, false);
        assert_null(msc_stages_find(s, "parse", key(1)));
        put(s, "parse", 1, NULL);
        msc_stages_close(s);
        s = open_stages(p, false);
        check(s, "parse", 1);
        msc_stages_close(s);
    }
}

static int setup(void **state) {
    static struct place p;
    temp_folder_make(p.folder);
    snprintf(p.stages, sizeof p.stages, "%s/msc_stages.json", p.folder);
    snprintf(p.file, sizeof p.file, "%s/file", p.folder);
    *state = &p;
    return 0;
}

static int teardown(void **state) {
    const struct place *p = *state;
    temp_folder_remove(p->folder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipeline_stages__done_once),
        cmocka_unit_test(test_pipeline_stages__files),
        cmocka_unit_test(test_pipeline_stages__damaged),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
