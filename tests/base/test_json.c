// JSON: parsing, error messages with line and column, writing, typed access to members, and lists
// that are kept as text. Expected texts come from Python's json; expected messages are written by
// hand.
#include "base/json.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "tests/msc_test.h"

#include <math.h>
#include <stdlib.h>

static cJSON *parse(const char *text) {
    cJSON *tree = NULL;
    assert_ok(msc_json_parse(&tree, text, strlen(text), "t.json"));
    assert_non_null(tree);
    return tree;
}

static void expect_written(const char *text, const char *expected) {
    cJSON *tree = parse(text);
    struct msc_str s = {0};
    msc_json_write(&s, tree);
    assert_string_equal(msc_str_text(&s), expected);
    msc_str_finish(&s);
    cJSON_Delete(tree);
}

// Expected forms: Python's json.dumps(json.loads(text), separators=(",", ":")), except for
// exponents.
static void test_base_json__round_trips(void **state) {
    (void)state;
    expect_written(" { \"b\" : [ 1 , 2.50 , -3e2 ] , \"a\" : { } , \"\" : [ ] }\n",
                   "{\"b\":[1,2.5,-300],\"a\":{},\"\":[]}");
    expect_written("[true,false,null,\"\"]", "[true,false,null,\"\"]");
    expect_written("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\\\"\\\\\\u001f\"",
                   "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\\b\\f\\n\\r\\t\\\"\\\\\\u001f\"");
    expect_written("[0,-0.0,0.1,1E5,1e+2]", "[0,-0,0.1,100000,100]");
    expect_written("[9007199254740991,-9007199254740991,1e300,123456789.125]",
                   "[9007199254740991,-9007199254740991,1e+300,123456789.125]");
    expect_written("7", "7");
}

// Strings that are not valid UTF-8 are written with U+FFFD for each bad byte, and control
// characters escaped.
static void test_base_json__writes_only_utf8(void **state) {
    static const struct {
        const char *text, *written;
    } cases[] = {
        {"\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\x7f|\xc2\x80|\xc2\x9f|\xc2\xa0", "\"\\u007f|\\u0080|\\u009f|\xc2\xa0\""},
        {"caf\xe9.npz", "\"caf\\ufffd.npz\""},
        {"\xe2\x82", "\"\\ufffd\\ufffd\""},
        {"\xff\"\xed\xa0\x80\n", "\"\\ufffd\\\"\\ufffd\\ufffd\\ufffd\\n\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct msc_str s = {0};
        msc_json_write_text(&s, cases[i].text);
        assert_string_equal(msc_str_text(&s), cases[i].written);
        msc_str_finish(&s);
    }
}

static void test_base_json__passes_over_a_mark(void **state) {
    (void)state;
    cJSON *tree = parse("\xef\xbb\xbf{\"a\":1}");
    cJSON_Delete(tree);
    assert_int_equal(msc_json_parse(&tree, "\xef\xbb\xbf\xef\xbb\xbf{}", 8, "t.json"),
                     MSC_E_FORMAT);
}

// Common mistakes in JSON typed by hand or pasted from a word processor.
static void test_base_json__slips_are_named(void **state) {
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"{\n \xe2\x80\x9cgym\xe2\x80\x9d:1}", "t.json:2:2: expected a key in double quotes, found "
                                               "a curly quote (U+201C); JSON wants \""},
        {"[1, \xe2\x80\x9dx\xe2\x80\x9d]",
         "t.json:1:5: expected a value, found a curly quote (U+201D); JSON wants \""},
        {"{\"\xc3\xb6\": \"x\xe2\x80\x9d, \"b\": 1}",
         "t.json:1:9: expected \" at the end of a string, found a curly quote (U+201D)"},
        {"{\"a\xe2\x80\x9d: \"b\"}", "t.json:1:4: expected \" at the end of a string"},
        {"{\"a\xe2\x80\x9d: 1,\n\"b\": 2}", "t.json:1:4: expected \" at the end of a string"},
        {"[\"a\xe2\x80\x9d]", "t.json:1:4: expected \" at the end of a string"},
        {"[\"\xe2\x80\x9cx\xe2\x80\x9d\" 1]", "t.json:1:8: expected ',' or ']'"},
        {"{'a':1}", "t.json:1:2: expected a key in double quotes, found a single quote"},
        {"{\n  ...\n}",
         "t.json:2:3: expected a key in double quotes, found ...; write the omitted"},
        {"[\xe2\x80\xa6]", "t.json:1:2: expected a value, found an ellipsis (U+2026)"},
        {"// comment\n1", "t.json:1:1: expected a value, found a comment; JSON has none"},
        {"[1 /* x */]", "t.json:1:4: expected ',' or ']', found a comment"},
        {"[1] # x", "t.json:1:5: text after the end of the value"},
        {"[True]", "t.json:1:2: expected a value, found True; JSON wants true"},
        {"[-Infinity]", "t.json:1:2: malformed number"},
        {"[NaN]", "t.json:1:2: expected a value, found NaN; JSON has only finite numbers"},
        {"{\xc2\xa0\"a\": 1}",
         "t.json:1:2: expected a key in double quotes, found a no-break space"},
        {"\xff\xfe{", "t.json:1:1: expected a value, found UTF-16; save the text as UTF-8"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *tree = NULL;
        assert_int_equal(msc_json_parse(&tree, cases[i].text, strlen(cases[i].text), "t.json"),
                         MSC_E_FORMAT);
        assert_message(cases[i].message);
    }
    // Curly quotes inside a string are ordinary characters.
    cJSON_Delete(parse("[\"\xe2\x80\x9cx\xe2\x80\x9d\", 1]"));
}

static void test_base_json__errors_name_the_place(void **state) {
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "t.json:1:1: unexpected end of text, expected a value"},
        {"{\"a\": 1,\n \"b\" 2}", "t.json:2:6: expected ':' after a key"},
        {"{\"a\": 1,\n\n  }", "t.json:1:8: a trailing comma; JSON allows none before '}'"},
        {"[1 2]", "t.json:1:4: expected ',' or ']'"},
        {"[1,]", "t.json:1:3: a trailing comma; JSON allows none before ']'"},
        {"[1,,2]", "t.json:1:4: expected a value"},
        {"{\"a\":1", "t.json:1:7: unexpected end of text, expected ',' or '}'"},
        {"[1]x", "t.json:1:4: text after the end"},
        {"[01]", "t.json:1:2: malformed number"},
        {"[1.]", "t.json:1:2: malformed number"},
        {"[-]", "t.json:1:2: malformed number"},
        {"[1e+]", "t.json:1:2: malformed number"},
        {"[+1]", "t.json:1:2: expected a value"},
        {"[NaN]", "t.json:1:2: expected a value"},
        {"[1e999]", "t.json:1:2: this number is too large"},
        {"[truE]", "t.json:1:2: expected a value"},
        {"\n\n \"abc", "t.json:3:2: this string has no closing quote"},
        {"\"a\nb\"", "t.json:1:3: control character"},
        {"\"\xc3\xa9\xc3\xa9\\x\"", "t.json:1:5: expected one of"},
        {"\"\\u12g4\"", "t.json:1:6: expected four hexadecimal digits"},
        {"\"\\ud800\"", "t.json:1:4: half of a surrogate pair"},
        {"\"\\udc00\"", "t.json:1:4: half of a surrogate pair"},
        {"[\"\xc3\xb6\xe9\"]", "t.json:1:4: byte 0xe9 is not UTF-8; save the text as UTF-8"},
        {"{\n\"a\": \"\xed\xa0\x80\"}", "t.json:2:7: byte 0xed is not UTF-8"},
        {"{\"\xc0\x80\": 1}", "t.json:1:3: byte 0xc0 is not UTF-8"},
        {"[\"\xe2\x82\"]", "t.json:1:3: byte 0xe2 is not UTF-8"},
        {"\"\\ud800\\u0041\"", "t.json:1:4: half of a surrogate pair"},
        {"\"\\u0000\"", "\\u0000"},
        {"{\"a\":1,\n\"c\":{\"a\":2},\n\"b\":3,\"a\":4,\"b\":5}", "t.json:3:7: duplicate key a"},
        {"// comment\n1", "t.json:1:1: expected a value"},
        {"{'a':1}", "t.json:1:2: expected a key in double quotes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cJSON *tree = NULL;
        enum msc_status status =
            msc_json_parse(&tree, cases[i].text, strlen(cases[i].text), "t.json");
        assert_null(tree);
        if (status != MSC_E_FORMAT) {
            fail_msg("accepted: %s", cases[i].text);
        }
        assert_message(cases[i].message);
    }
}

// A text ends at its given length, not at a NUL. If a text is cut, the error is at its end, and
// nothing after the end is read.
static void test_base_json__cut_anywhere(void **state) {
    static const char text[] = "{\"key\":[1.5e3,true,null,\"\\u00e9\\ud83d\\ude00x\",{\"z\":-2}]}";
    (void)state;
    for (size_t length = 0; length < sizeof text - 1; length++) {
        char *exact = msc_alloc(length);
        memcpy(exact, text, length);
        cJSON *tree = NULL;
        assert_int_equal(msc_json_parse(&tree, exact, length, "cut"), MSC_E_FORMAT);
        msc_free(exact);
    }
    cJSON *tree = NULL;
    assert_int_equal(msc_json_parse(&tree, "1\0 2", 4, "nul"), MSC_E_FORMAT);
}

static void test_base_json__depth(void **state) {
    (void)state;
    char text[402];
    for (int depth = 200; depth <= 201; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        cJSON *tree = NULL;
        enum msc_status status = msc_json_parse(&tree, text, (size_t)depth * 2, "deep");
        assert_int_equal(status, depth == 200 ? MSC_OK : MSC_E_FORMAT);
        cJSON_Delete(tree);
    }
    assert_message("deep:1:201: nested deeper than 200");
}

static void test_base_json__many_keys(void **state) {
    (void)state;
    struct msc_str s = {0};
    msc_str_char(&s, '{');
    for (int i = 0; i < 20000; i++) {
        msc_str_printf(&s, "%s\"k%d\":%d", i ? "," : "", i, i);
    }
    msc_str_char(&s, '}');
    cJSON *tree = parse(msc_str_text(&s));
    assert_int_equal(cJSON_GetArraySize(tree), 20000);
    struct msc_str again = {0};
    msc_json_write(&again, tree);
    assert_string_equal(msc_str_text(&again), msc_str_text(&s));
    cJSON_Delete(tree);
    msc_str_finish(&again);
    msc_str_finish(&s);
}

// Expected text: Python's json.dumps(value, indent=2).
static void test_base_json__pretty(void **state) {
    (void)state;
    cJSON *tree = parse("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[]}");
    struct msc_str s = {0};
    msc_json_write_pretty(&s, tree);
    assert_string_equal(msc_str_text(&s), "{\n"
                                          "  \"a\": [\n"
                                          "    1,\n"
                                          "    {\n"
                                          "      \"b\": null\n"
                                          "    }\n"
                                          "  ],\n"
                                          "  \"c\": {},\n"
                                          "  \"d\": []\n"
                                          "}\n");
    msc_str_finish(&s);
    cJSON_Delete(tree);
}

static void test_base_json__not_finite_is_null(void **state) {
    (void)state;
    struct msc_str s = {0};
    msc_json_write_number(&s, NAN);
    msc_json_write_number(&s, INFINITY);
    msc_json_write_number(&s, 9007199254740992.0);
    assert_string_equal(msc_str_text(&s), "nullnull9007199254740992");
    msc_str_finish(&s);
}

static void test_base_json__load(void **state) {
    (void)state;
    cJSON *tree = NULL;
    assert_int_equal(msc_json_load(&tree, "absent.json"), MSC_E_NOT_FOUND);
    assert_message("absent.json");
    assert_ok(msc_file_write("loaded.json", "\xef\xbb\xbf{\"a\": 2}\n", 12));
    assert_ok(msc_json_load(&tree, "loaded.json"));
    assert_int_equal(cJSON_GetObjectItem(tree, "a")->valueint, 2);
    cJSON_Delete(tree);
    tree = NULL;
    assert_ok(msc_file_write("loaded.json", "{\n\"a\" 2}\n", 9));
    assert_int_equal(msc_json_load(&tree, "loaded.json"), MSC_E_FORMAT);
    assert_message("loaded.json:2:5:");
    assert_ok(msc_file_remove("loaded.json"));
}

static void test_base_json__get(void **state) {
    (void)state;
    cJSON *tree =
        parse("{\"t\":\"x\",\"d\":1.5,\"i\":-7,\"big\":\"9223372036854775807\",\"huge\":1e17,"
              "\"b\":true,\"o\":{},\"l\":[],\"n\":null}");
    const char *text = NULL;
    double number = 0;
    int64_t whole = 0;
    bool flag = false;
    const cJSON *part = NULL;
    assert_ok(msc_json_get_text(&text, tree, "t", "cfg"));
    assert_string_equal(text, "x");
    assert_ok(msc_json_get_double(&number, tree, "d", "cfg"));
    assert_true(number == 1.5);
    assert_ok(msc_json_get_i64(&whole, tree, "i", "cfg"));
    assert_int_equal(whole, -7);
    assert_ok(msc_json_get_i64(&whole, tree, "big", "cfg"));
    assert_true(whole == INT64_MAX);
    assert_ok(msc_json_get_bool(&flag, tree, "b", "cfg"));
    assert_true(flag);
    assert_ok(msc_json_get_object(&part, tree, "o", "cfg"));
    assert_ok(msc_json_get_array(&part, tree, "l", "cfg"));

    assert_int_equal(msc_json_get_text(&text, tree, "T", "cfg"), MSC_E_FORMAT);
    assert_message("cfg: \"T\" is missing, expected a string");
    assert_int_equal(msc_json_get_text(&text, tree, "d", "cfg"), MSC_E_FORMAT);
    assert_message("cfg: \"d\" is of type number, expected a string");
    assert_int_equal(msc_json_get_double(&number, tree, "t", "cfg"), MSC_E_FORMAT);
    assert_int_equal(msc_json_get_i64(&whole, tree, "d", "cfg"), MSC_E_FORMAT);
    assert_message("cfg: \"d\" is 1.5, expected a whole number");
    assert_int_equal(msc_json_get_i64(&whole, tree, "huge", "cfg"), MSC_E_FORMAT);
    assert_int_equal(msc_json_get_i64(&whole, tree, "t", "cfg"), MSC_E_FORMAT);
    assert_int_equal(msc_json_get_i64(&whole, tree, "b", "cfg"), MSC_E_FORMAT);
    assert_int_equal(msc_json_get_bool(&flag, tree, "n", "cfg"), MSC_E_FORMAT);
    assert_message("cfg: \"n\" is null, expected true or false");
    assert_int_equal(msc_json_get_object(&part, tree, "l", "cfg"), MSC_E_FORMAT);
    assert_message("cfg: \"l\" is of type array, expected an object");
    assert_int_equal(msc_json_get_array(&part, tree, "o", "cfg"), MSC_E_FORMAT);
    assert_int_equal(msc_json_get_array(&part, NULL, "o", "cfg"), MSC_E_FORMAT);
    cJSON_Delete(tree);
}

static void test_base_json__texts(void **state) {
    struct msc_arena arena = {0};
    const char *const *texts = NULL;
    size_t n = 7;
    (void)state;
    cJSON *tree = parse("{\"a\":[\"x\",\"y*\"],\"mixed\":[\"x\",1],\"t\":\"x\"}");
    assert_ok(msc_json_get_texts(&texts, &n, tree, "absent", "names", "cfg", &arena));
    assert_true(n == 0 && texts == NULL);
    assert_ok(msc_json_get_texts(&texts, &n, tree, "a", "names", "cfg", &arena));
    assert_int_equal(n, 2);
    assert_string_equal(texts[0], "x");
    assert_string_equal(texts[1], "y*");
    assert_int_equal(msc_json_get_texts(&texts, &n, tree, "mixed", "names", "cfg", &arena),
                     MSC_E_INVALID);
    assert_message("cfg.mixed: expected a list of names");
    assert_int_equal(msc_json_get_texts(&texts, &n, tree, "t", "names", "cfg", &arena),
                     MSC_E_FORMAT);
    cJSON_Delete(tree);
    msc_arena_finish(&arena);
}

static void test_base_json__check_keys(void **state) {
    static const char *const known[] = {"bits", "observer"};
    (void)state;
    cJSON *tree = parse("{\"bits\":8,\"observr\":1}");
    assert_int_equal(msc_json_check_keys(tree, known, 2, "choices[0]"), MSC_E_INVALID);
    assert_message("choices[0]: unknown key \"observr\", did you mean \"observer\"?");
    assert_int_equal(msc_json_check_keys(tree, known, 1, "choices[0]"), MSC_E_INVALID);
    assert_string_equal(msc_status_message(),
                        "choices[0]: unknown key \"observr\", the known key is bits");
    cJSON_DeleteItemFromObject(tree, "observr");
    assert_ok(msc_json_check_keys(tree, known, 2, "choices[0]"));
    cJSON_Delete(tree);
}

static void test_base_json__add(void **state) {
    (void)state;
    cJSON *tree = cJSON_CreateObject();
    assert_ok(msc_json_add_text(tree, "t", "x\"y"));
    assert_ok(msc_json_add_number(tree, "n", 0.1));
    assert_ok(msc_json_add_bool(tree, "b", false));
    assert_ok(msc_json_add_u64_text(tree, "u", UINT64_MAX));
    cJSON *list = cJSON_CreateArray();
    assert_ok(msc_json_push(list, cJSON_CreateNumber(1)));
    assert_ok(msc_json_add(tree, "l", list));
    assert_int_equal(msc_json_add(tree, "none", NULL), MSC_E_NOMEM);
    assert_int_equal(msc_json_add(NULL, "none", cJSON_CreateNull()), MSC_E_NOMEM);
    assert_int_equal(msc_json_push(list, NULL), MSC_E_NOMEM);
    struct msc_str s = {0};
    msc_json_write(&s, tree);
    assert_string_equal(
        msc_str_text(&s),
        "{\"t\":\"x\\\"y\",\"n\":0.1,\"b\":false,\"u\":\"18446744073709551615\",\"l\":[1]}");
    msc_str_finish(&s);
    cJSON_Delete(tree);
}

// Short integers take a fast path and must give the value that strtod gives.
static void test_base_json__whole_numbers(void **state) {
    static const char *const texts[] = {
        "0",
        "-0",
        "7",
        "-7",
        "123456789012345",
        "-999999999999999",
        "1234567890123456",
        "9007199254740993",
        "123456789012345678901234567890",
        "100",
        "1e2",
        "1.0",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        cJSON *number = NULL;
        assert_ok(msc_json_parse(&number, texts[i], strlen(texts[i]), "a"));
        double expected = strtod(texts[i], NULL);
        // compared bit by bit, because -0 == 0
        assert_memory_equal(&number->valuedouble, &expected, sizeof expected);
        cJSON_Delete(number);
    }
}

// msc_json_parse_lists keeps the lists in the member "w" as text, but still checks their syntax.
static void test_base_json__lists_as_text(void **state) {
    static const char text[] =
        "{\"a\":[1],\"w\":{\"l\":[{\"x\":[1,\"]\",{}]},2],\"n\":1,\"o\":{\"l\":[3]},\"e\":[]},"
        "\"b\":{\"l\":[4]}}";
    static const char *const bad[] = {
        "{\"w\":{\"l\":[1,]}}", "{\"w\":{\"l\":[1 2]}}",     "{\"w\":{\"l\":[01]}}",
        "{\"w\":{\"l\":[1}}",   "{\"w\":{\"l\":[\"\\q\"]}}", "{\"w\":{\"l\":[{\"a\":1,\"a\":1}]}}",
        "{\"w\":{\"l\":[1",
    };
    (void)state;
    cJSON *tree = NULL;
    struct msc_str s = {0};
    assert_ok(msc_json_parse_lists(&tree, text, strlen(text), "a", "w"));
    const cJSON *member = cJSON_GetObjectItem(tree, "w");
    assert_true(cJSON_IsRaw(cJSON_GetObjectItem(member, "l")));
    assert_string_equal(cJSON_GetObjectItem(member, "e")->valuestring, "[]");
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(cJSON_GetObjectItem(member, "o"), "l")));
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "b"), "l")));
    assert_true(cJSON_IsArray(cJSON_GetObjectItem(tree, "a")));
    msc_json_write(&s, tree);
    assert_string_equal(msc_str_text(&s), text);
    msc_str_finish(&s);
    cJSON_Delete(tree);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(msc_json_parse_lists(&tree, bad[i], strlen(bad[i]), "a", "w"),
                         MSC_E_FORMAT);
    }
}

static enum msc_status add_up(void *payload, const cJSON *element) {
    *(double *)payload += element->valuedouble;
    return element->valuedouble < 100 ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "too much");
}

static void test_base_json__each(void **state) {
    static const struct {
        const char *text;
        enum msc_status status;
        double sum;
    } rows[] = {
        {" [1, 2,3] ", MSC_OK, 6},  {"[]", MSC_OK, 0},       {"[1,100,2]", MSC_E_INVALID, 101},
        {"[1,2", MSC_E_FORMAT, 3},  {"{}", MSC_E_FORMAT, 0}, {"", MSC_E_FORMAT, 0},
        {"[1] 2", MSC_E_FORMAT, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double sum = 0;
        assert_int_equal(msc_json_each(rows[i].text, strlen(rows[i].text), "a", add_up, &sum),
                         rows[i].status);
        assert_true(sum == rows[i].sum);
    }
}

static void test_base_json__read_i64(void **state) {
    static const struct {
        const char *text;
        bool is_read;
    } rows[] = {
        {"3", true},   {"-1", true},     {"9007199254740992", true},  {"2.5", false},
        {"-2", false}, {"1e300", false}, {"9007199254740994", false}, {"\"3\"", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cJSON *item = cJSON_Parse(rows[i].text);
        int64_t value = 77;
        assert_int_equal(msc_json_read_i64(&value, item, -1, INT64_C(1) << 53), rows[i].is_read);
        assert_true(rows[i].is_read ? (double)value == item->valuedouble : value == 77);
        cJSON_Delete(item);
    }
    assert_false(msc_json_read_i64(&(int64_t){0}, NULL, 0, 9));
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_json__round_trips),
        cmocka_unit_test(test_base_json__errors_name_the_place),
        cmocka_unit_test(test_base_json__writes_only_utf8),
        cmocka_unit_test(test_base_json__passes_over_a_mark),
        cmocka_unit_test(test_base_json__slips_are_named),
        cmocka_unit_test(test_base_json__cut_anywhere),
        cmocka_unit_test(test_base_json__depth),
        cmocka_unit_test(test_base_json__many_keys),
        cmocka_unit_test(test_base_json__pretty),
        cmocka_unit_test(test_base_json__not_finite_is_null),
        cmocka_unit_test(test_base_json__load),
        cmocka_unit_test(test_base_json__get),
        cmocka_unit_test(test_base_json__texts),
        cmocka_unit_test(test_base_json__check_keys),
        cmocka_unit_test(test_base_json__add),
        cmocka_unit_test(test_base_json__whole_numbers),
        cmocka_unit_test(test_base_json__lists_as_text),
        cmocka_unit_test(test_base_json__each),
        cmocka_unit_test(test_base_json__read_i64),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
