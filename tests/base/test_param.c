// Parameter tables: defaults, reading from JSON with range errors, writing, and help text. Expected
// values and messages are written by hand.
#include "base/param.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "tests/msc_test.h"

#include <math.h>

struct anneal {
    bool verbose;
    int64_t steps;
    double t0;
    double rate;
    const char *label;
    const char *path;
    int mode;
    double time;
    const struct cJSON *extra;
};

#define ROW(member) .name = #member, .offset = offsetof(struct anneal, member)
static const struct msc_param anneal_params[] = {
    {ROW(verbose), .help = "messages", .type = MSC_PARAM_BOOL, .number = 1},
    {ROW(steps), .help = "moves", .type = MSC_PARAM_I64, .number = 10, .min = 1, .max = 1e6},
    {ROW(t0), .help = "starting temperature", .type = MSC_PARAM_F64, .number = 1.5, .min = 1e-3,
     .max = 1e3, .unit = "reward"},
    {ROW(rate), .help = "cooling", .type = MSC_PARAM_F64, .number = 0.5, .min = 0, .max = INFINITY},
    {ROW(label), .help = "name in reports", .type = MSC_PARAM_TEXT, .text = "plain"},
    {ROW(path), .help = "where to", .type = MSC_PARAM_TEXT},
    {ROW(mode), .help = "how to move", .type = MSC_PARAM_ENUM, .text = "flip",
     .names = "swap|flip|flip_two"},
    {ROW(time), .help = "stop after", .type = MSC_PARAM_DURATION, .number = INFINITY},
    {ROW(extra), .help = "anything", .type = MSC_PARAM_JSON},
    {0},
};
#undef ROW

static cJSON *parse(const char *text) {
    cJSON *tree = NULL;
    assert_ok(msc_json_parse(&tree, text, strlen(text), "t"));
    return tree;
}

static void test_base_param__defaults(void **state) {
    (void)state;
    struct anneal a;
    memset(&a, 0x55, sizeof a);
    msc_param_defaults(anneal_params, &a);
    assert_true(a.verbose);
    assert_int_equal(a.steps, 10);
    assert_true(a.t0 == 1.5 && a.rate == 0.5 && isinf(a.time));
    assert_string_equal(a.label, "plain");
    assert_null(a.path);
    assert_int_equal(a.mode, 1);
    assert_null(a.extra);
}

static void test_base_param__read(void **state) {
    static const char *const ignore[] = {"type", NULL};
    (void)state;
    struct msc_arena arena = {0};
    struct anneal a;
    msc_param_defaults(anneal_params, &a);
    assert_ok(msc_param_read(anneal_params, &a, NULL, "agent", ignore, &arena));
    assert_int_equal(a.steps, 10);
    cJSON *tree = parse("{\"type\":\"anneal\",\"verbose\":false,\"steps\":1000000,\"t0\":2,"
                        "\"label\":\"mine\",\"mode\":\"flip_two\",\"time\":\"1h30m\","
                        "\"path\":null,\"extra\":[1]}");
    assert_ok(msc_param_read(anneal_params, &a, tree, "agent", ignore, &arena));
    assert_false(a.verbose);
    assert_int_equal(a.steps, 1000000);
    assert_true(a.t0 == 2 && a.rate == 0.5 && a.time == 5400);
    assert_int_equal(a.mode, 2);
    assert_null(a.path);
    assert_ptr_equal(a.extra, cJSON_GetObjectItem(tree, "extra"));
    cJSON_Delete(tree);
    assert_string_equal(a.label, "mine"); // a copy that outlives the JSON tree

    tree = parse("{\"steps\":\"42\",\"time\":7.5,\"mode\":\"swap\",\"extra\":null}");
    assert_ok(msc_param_read(anneal_params, &a, tree, "agent", NULL, &arena));
    assert_int_equal(a.steps, 42);
    assert_true(a.time == 7.5);
    assert_int_equal(a.mode, 0);
    assert_null(a.extra);
    cJSON_Delete(tree);
    msc_arena_finish(&arena);
}

static void test_base_param__errors(void **state) {
    static const char *const ignore[] = {"type", NULL};
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"{\"stps\":1}", "agent: unknown key \"stps\", did you mean \"steps\"?"},
        {"{\"tpye\":1}", "agent: unknown key \"tpye\", did you mean \"type\"?"},
        {"{\"Steps\":1}", "agent: unknown key \"Steps\", did you mean \"steps\"?"},
        {"{\"frobnicate\":1}",
         "agent: unknown key \"frobnicate\", the known keys are verbose, steps, t0, rate, "
         "label, path, mode, time, extra, type"},
        {"{\"steps\":0}", "agent: \"steps\" is 0, expected 1 to 1000000"},
        {"{\"steps\":1.5}", "agent: \"steps\" is 1.5, expected a whole number"},
        {"{\"steps\":\"many\"}", "agent: \"steps\" is \"many\", expected a whole number"},
        {"{\"steps\":true}", "agent: \"steps\" is true, expected a whole number"},
        {"{\"t0\":1e4}", "agent: \"t0\" is 10000, expected 0.001 to 1000 reward"},
        {"{\"t0\":\"1\"}", "agent: \"t0\" is \"1\", expected a number"},
        {"{\"rate\":-1}", "agent: \"rate\" is -1, expected at least 0"},
        {"{\"verbose\":1}", "agent: \"verbose\" is 1, expected true or false"},
        {"{\"label\":null}", "agent: \"label\" is null, expected a string"},
        {"{\"mode\":\"fli\"}", "agent: \"mode\" is \"fli\", expected one of swap, flip, flip_two"},
        {"{\"mode\":1}", "agent: \"mode\" is 1, expected one of swap"},
        {"{\"time\":\"8x\"}", "agent: \"time\" is \"8x\", expected a time such as"},
        {"{\"time\":-1}", "agent: \"time\" is -1, expected a time such as"},
        {"{\"time\":null}", "agent: \"time\" is null, expected a time such as"},
        {"[1]", "agent: expected an object"},
    };
    (void)state;
    struct msc_arena arena = {0};
    struct anneal a;
    msc_param_defaults(anneal_params, &a);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *tree = parse(cases[i].text);
        assert_int_equal(msc_param_read(anneal_params, &a, tree, "agent", ignore, &arena),
                         MSC_E_INVALID);
        assert_message(cases[i].message);
        cJSON_Delete(tree);
    }
    assert_int_equal(a.steps, 10);
    msc_arena_finish(&arena);
}

// Written parameters read back to the same values.
static void test_base_param__write(void **state) {
    (void)state;
    struct msc_arena arena = {0};
    struct anneal a;
    struct anneal b;
    msc_param_defaults(anneal_params, &a);
    a.steps = 999;
    a.mode = 2;
    a.t0 = 0.1;
    cJSON *tree = cJSON_CreateObject();
    assert_ok(msc_param_write(anneal_params, &a, tree));
    struct msc_str s = {0};
    msc_json_write(&s, tree);
    assert_string_equal(msc_str_text(&s),
                        "{\"verbose\":true,\"steps\":999,\"t0\":0.1,\"rate\":0.5,"
                        "\"label\":\"plain\",\"path\":null,\"mode\":\"flip_two\",\"extra\":null}");
    msc_param_defaults(anneal_params, &b);
    assert_ok(msc_param_read(anneal_params, &b, tree, "again", NULL, &arena));
    assert_true(b.steps == 999 && b.mode == 2 && b.t0 == 0.1 && isinf(b.time) && !b.path);
    cJSON_Delete(tree);

    // 2^62 + 1 cannot be represented as a double, so it is written as a string.
    a.steps = 4611686018427387905;
    tree = cJSON_CreateObject();
    assert_ok(msc_param_write(anneal_params, &a, tree));
    assert_string_equal(cJSON_GetObjectItem(tree, "steps")->valuestring, "4611686018427387905");
    cJSON_Delete(tree);
    msc_str_finish(&s);
    msc_arena_finish(&arena);
}

// An object parameter is written only if it was given. It is written unchanged.
static void test_base_param__object(void **state) {
    struct options {
        const cJSON *extra;
    } o, again;
    static const struct msc_param params[] = {
        {.name = "extra", .help = "anything", .type = MSC_PARAM_OBJECT}, {0}};
    struct msc_arena arena = {0};
    struct msc_str s = {0};
    (void)state;
    for (int is_given = 0; is_given < 2; is_given++) {
        cJSON *tree = parse(is_given ? "{\"extra\":{\"a\":[1,2]}}" : "{}");
        cJSON *out = cJSON_CreateObject();
        msc_param_defaults(params, &o);
        assert_ok(msc_param_read(params, &o, tree, "test", NULL, &arena));
        assert_ok(msc_param_write(params, &o, out));
        msc_str_clear(&s);
        msc_json_write(&s, out);
        assert_string_equal(msc_str_text(&s), is_given ? "{\"extra\":{\"a\":[1,2]}}" : "{}");
        msc_param_defaults(params, &again);
        assert_ok(msc_param_read(params, &again, out, "again", NULL, &arena));
        assert_int_equal(again.extra != NULL, is_given);
        cJSON_Delete(tree);
        cJSON_Delete(out);
    }
    msc_str_finish(&s);
    msc_arena_finish(&arena);
}

static void test_base_param__help(void **state) {
    (void)state;
    struct msc_str s = {0};
    msc_param_help(anneal_params, &s);
    assert_string_equal(msc_str_text(&s),
                        "  verbose  messages (default true)\n"
                        "  steps    moves (default 10, 1 to 1000000)\n"
                        "  t0       starting temperature (default 1.5, 0.001 to 1000, in reward)\n"
                        "  rate     cooling (default 0.5, at least 0)\n"
                        "  label    name in reports (default plain)\n"
                        "  path     where to\n"
                        "  mode     how to move (default flip, one of swap, flip, flip_two)\n"
                        "  time     stop after (default no limit)\n"
                        "  extra    anything\n");
    msc_str_finish(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_param__defaults), cmocka_unit_test(test_base_param__read),
        cmocka_unit_test(test_base_param__errors),   cmocka_unit_test(test_base_param__write),
        cmocka_unit_test(test_base_param__object),   cmocka_unit_test(test_base_param__help),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
