// A strict RFC 8259 parser that builds cJSON trees. cJSON's own parser reports neither line nor
// reason, and accepts duplicate keys, control characters and numbers such as 01.
#include "base/json.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST 200

// A key of an object that is open or has just been closed.
struct key_place {
    const char *key; // borrowed from the tree
    size_t offset;
};

struct parser {
    const char *text;
    size_t length;
    size_t at;
    int depth;
    const char *name;
    struct msc_str scratch; // the string being decoded
    size_t text_start,
        text_end;           // bounds of the last string; the end may be the position of an error
    struct key_place *keys; // keys of all open objects, innermost last
    size_t n_keys;
    size_t key_capacity;
    const char *lists_key; // lists in this member of the outermost object are kept as text; or NULL
    bool is_in_lists;      // the parser is inside that member
    // Receives the elements that are not kept; may be NULL.
    enum msc_status (*take)(void *payload, const cJSON *element);
    void *payload;
};

static enum msc_status parse_value(struct parser *p, cJSON **out);

static enum msc_status fail_at(const struct parser *p, size_t offset, const char *what,
                               const char *detail) {
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < offset && i < p->length; i++) {
        if (p->text[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)p->text[i] & 0xc0) != 0x80) {
            column++; // a UTF-8 continuation byte does not start a new column
        }
    }
    return MSC_FAIL(MSC_E_FORMAT, "%s:%zu:%zu: %s%s", p->name, line, column, what, detail);
}

static enum msc_status fail_memory(const struct parser *p) {
    return MSC_FAIL(MSC_E_NOMEM, "%s: out of memory", p->name);
}

static int json_parse_peek(const struct parser *p) {
    return p->at < p->length ? (unsigned char)p->text[p->at] : -1;
}

static void skip_space(struct parser *p) {
    int c = json_parse_peek(p);
    while (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        p->at++;
        c = json_parse_peek(p);
    }
}

// Characters and words that people and word processors write by mistake in JSON. An error message
// ends with ", found " and the name of the character or word. The double curly quotes U+201D and
// U+201C must come first.
static const struct slip {
    const char *text, *name;
} slips[] = {
    {"\xe2\x80\x9d", "a curly quote (U+201D); JSON wants \""},
    {"\xe2\x80\x9c", "a curly quote (U+201C); JSON wants \""},
    {"\xe2\x80\x9e", "a curly quote (U+201E); JSON wants \""},
    {"\xe2\x80\x98", "a curly quote (U+2018); JSON wants \""},
    {"\xe2\x80\x99", "a curly quote (U+2019); JSON wants \""},
    {"'", "a single quote; JSON wants \""},
    {"...", "...; write the omitted part, or remove it"},
    {"\xe2\x80\xa6", "an ellipsis (U+2026); write the omitted part, or remove it"},
    {"//", "a comment; JSON has none"},
    {"/*", "a comment; JSON has none"},
    {"#", "a comment; JSON has none"},
    {"True", "True; JSON wants true"},
    {"False", "False; JSON wants false"},
    {"None", "None; JSON wants null"},
    {"NaN", "NaN; JSON has only finite numbers"},
    {"Infinity", "Infinity; JSON has only finite numbers"},
    {"\xc2\xa0", "a no-break space (U+00A0); JSON wants a plain space"},
    {"\xff\xfe", "UTF-16; save the text as UTF-8"},
    {"\xfe\xff", "UTF-16; save the text as UTF-8"},
};

enum { CLOSING = 0, CURLY_END = 2, SLIPS_END = sizeof slips / sizeof slips[0] };

// The name of the mistake at `offset`, if it is one of the first `end` entries; else NULL.
static const char *find_slip(const struct parser *p, size_t offset, size_t end) {
    for (size_t i = 0; i < end; i++) {
        size_t length = strlen(slips[i].text);
        if (p->length - offset >= length && memcmp(p->text + offset, slips[i].text, length) == 0) {
            return slips[i].name;
        }
    }
    return NULL;
}

// If the last string contains a closing curly quote without an opening one, the writer meant to end
// the string there. Reports this only if nothing but blanks is between that string and the error.
static const char *find_unended(size_t *place, const struct parser *p) {
    for (size_t i = p->text_end; i < p->at; i++) {
        if (!strchr(" \t\r\n", p->text[i])) {
            return NULL;
        }
    }
    for (size_t i = p->text_start; i < p->text_end; i++) {
        const char *slip = find_slip(p, i, CURLY_END);
        if (slip && slip != slips[CLOSING].name) {
            return NULL;
        }
        if (slip) {
            *place = i;
            return slip;
        }
    }
    return NULL;
}

static enum msc_status fail_expected(const struct parser *p, const char *expected) {
    char text[128];
    size_t place = p->at;
    const char *slip = find_slip(p, p->at, SLIPS_END);
    if (!slip) {
        slip = find_unended(&place, p);
        expected = slip ? "\" at the end of a string" : expected;
    }
    const char *found = place < p->length ? "expected " : "unexpected end of text, expected ";
    snprintf(text, sizeof text, "%s%s%s", expected, slip ? ", found " : "", slip ? slip : "");
    return fail_at(p, place, found, text);
}

static enum msc_status parse_hex4(struct parser *p, unsigned *out) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int c = json_parse_peek(p);
        if (c >= '0' && c <= '9') {
            value = value * 16 + (unsigned)(c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            value = value * 16 + (unsigned)((c | 0x20) - 'a') + 10;
        } else {
            return fail_expected(p, "four hexadecimal digits after \\u");
        }
    }
    *out = value;
    return MSC_OK;
}

static void append_utf8(struct msc_str *out, unsigned code) {
    if (code < 0x80) {
        msc_str_char(out, (char)code);
    } else if (code < 0x800) {
        msc_str_char(out, (char)(0xc0 | code >> 6));
        msc_str_char(out, (char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        msc_str_char(out, (char)(0xe0 | code >> 12));
        msc_str_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
        msc_str_char(out, (char)(0x80 | (code & 0x3f)));
    } else {
        msc_str_char(out, (char)(0xf0 | code >> 18));
        msc_str_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
        msc_str_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
        msc_str_char(out, (char)(0x80 | (code & 0x3f)));
    }
}

// Parses an escape after "\u"; a high surrogate must be followed by a low one.
static enum msc_status parse_unicode(struct parser *p) {
    size_t start = p->at;
    unsigned code = 0;
    MSC_TRY(parse_hex4(p, &code));
    if (code >= 0xd800 && code < 0xdc00) {
        unsigned low = 0;
        if (p->length - p->at >= 2 && memcmp(p->text + p->at, "\\u", 2) == 0) {
            p->at += 2;
            MSC_TRY(parse_hex4(p, &low));
        }
        if (low < 0xdc00 || low > 0xdfff) {
            return fail_at(p, start, "half of a surrogate pair", "");
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff) {
        return fail_at(p, start, "half of a surrogate pair", "");
    } else if (code == 0) {
        return fail_at(p, start, "a string cannot contain \\u0000", "");
    }
    append_utf8(&p->scratch, code);
    return MSC_OK;
}

static enum msc_status parse_escape(struct parser *p) {
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    int c = json_parse_peek(p);
    const char *letter = c > 0 ? strchr(letters, c) : NULL;
    if (c == 'u') {
        p->at++;
        return parse_unicode(p);
    }
    if (!letter) {
        return fail_expected(p, "one of \" \\ / b f n r t u after a backslash");
    }
    p->at++;
    msc_str_char(&p->scratch, meanings[letter - letters]);
    return MSC_OK;
}

// Checks that the string from `start` to the current position is UTF-8.
static enum msc_status check_characters(const struct parser *p, size_t start) {
    char what[48];
    size_t good = start + msc_utf8_length(p->text + start, p->at - start);
    if (good == p->at) {
        return MSC_OK;
    }
    snprintf(what, sizeof what, "byte 0x%02x is not UTF-8", (unsigned)(unsigned char)p->text[good]);
    return fail_at(p, good, what, "; save the text as UTF-8");
}

// Decodes the string at the current position into p->scratch.
static enum msc_status parse_text(struct parser *p) {
    size_t start = p->at++;
    p->text_start = p->text_end = start;
    msc_str_clear(&p->scratch);
    for (;;) {
        size_t plain = p->at;
        while (json_parse_peek(p) >= 0x20 && json_parse_peek(p) != '"' &&
               json_parse_peek(p) != '\\') {
            p->at++;
        }
        MSC_TRY(check_characters(p, plain));
        msc_str_append_n(&p->scratch, p->text + plain, p->at - plain);
        int c = json_parse_peek(p);
        if (c == '"') {
            p->text_end = ++p->at;
            return p->scratch.failed ? fail_memory(p) : MSC_OK;
        }
        if (c != '\\') {
            size_t place = 0;
            p->text_end = p->at;
            return find_unended(&place, p) ? fail_expected(p, "")
                   : c < 0 ? fail_at(p, start, "this string has no closing quote", "")
                           : fail_at(p, p->at, "control character inside a string", "");
        }
        p->at++;
        MSC_TRY(parse_escape(p));
    }
}

static size_t skip_digits(struct parser *p) {
    size_t start = p->at;
    while (json_parse_peek(p) >= '0' && json_parse_peek(p) <= '9') {
        p->at++;
    }
    return p->at - start;
}

// Integers of up to 15 digits are exact in double.
#define EXACT_DIGITS 15

static double whole_number(const char *text, size_t length) {
    bool is_negative = text[0] == '-';
    double value = 0.0;
    for (size_t i = is_negative; i < length; i++) {
        value = 10.0 * value + (text[i] - '0');
    }
    return is_negative ? -value : value;
}

// Converts the number from `start` to the current position.
static enum msc_status convert_number(double *out, struct parser *p, size_t start) {
    msc_str_clear(&p->scratch);
    msc_str_append_n(&p->scratch, p->text + start, p->at - start);
    if (p->scratch.failed) {
        return fail_memory(p);
    }
    return msc_parse_double(out, msc_str_text(&p->scratch))
               ? MSC_OK
               : fail_at(p, start, "this number is too large", "");
}

static enum msc_status parse_number(struct parser *p, cJSON **out) {
    size_t start = p->at;
    bool is_whole = true;
    p->at += json_parse_peek(p) == '-';
    bool leading_zero = json_parse_peek(p) == '0';
    size_t n_digits = skip_digits(p);
    if (n_digits == 0 || (leading_zero && n_digits > 1)) {
        return fail_at(p, start, "malformed number", "");
    }
    if (json_parse_peek(p) == '.') {
        is_whole = false;
        p->at++;
        if (skip_digits(p) == 0) {
            return fail_at(p, start, "malformed number", "");
        }
    }
    if (json_parse_peek(p) == 'e' || json_parse_peek(p) == 'E') {
        is_whole = false;
        p->at++;
        p->at += json_parse_peek(p) == '+' || json_parse_peek(p) == '-';
        if (skip_digits(p) == 0) {
            return fail_at(p, start, "malformed number", "");
        }
    }
    double value = 0;
    if (is_whole && n_digits <= EXACT_DIGITS) {
        value = whole_number(p->text + start, p->at - start);
    } else {
        MSC_TRY(convert_number(&value, p, start));
    }
    *out = cJSON_CreateNumber(value);
    return *out ? MSC_OK : fail_memory(p);
}

static enum msc_status parse_word(struct parser *p, cJSON **out) {
    static const struct {
        const char *word;
        cJSON *(*create)(void);
    } words[] = {
        {"true", cJSON_CreateTrue}, {"false", cJSON_CreateFalse}, {"null", cJSON_CreateNull}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word);
        if (p->length - p->at >= length && memcmp(p->text + p->at, words[i].word, length) == 0) {
            p->at += length;
            *out = words[i].create();
            return *out ? MSC_OK : fail_memory(p);
        }
    }
    return fail_expected(p, "a value");
}

// Reads the separator after an element. *more is true for a comma, false if `close` ends the list.
static enum msc_status parse_separator(struct parser *p, char close, bool *more) {
    skip_space(p);
    int c = json_parse_peek(p);
    if (c != ',' && c != close) {
        return fail_expected(p, close == ']' ? "',' or ']'" : "',' or '}'");
    }
    size_t comma = p->at++;
    *more = c == ',';
    skip_space(p);
    if (*more && json_parse_peek(p) == close) {
        return fail_at(p, comma, "a trailing comma; JSON allows none before ",
                       close == ']' ? "']'" : "'}'");
    }
    return MSC_OK;
}

static enum msc_status take_element(const struct parser *p, cJSON *item) {
    enum msc_status status = p->take ? p->take(p->payload, item) : MSC_OK;
    cJSON_Delete(item);
    return status;
}

// If `array` is NULL, elements are not kept.
static enum msc_status parse_array(struct parser *p, cJSON *array) {
    bool more = true;
    p->at++;
    skip_space(p);
    if (json_parse_peek(p) == ']') {
        p->at++;
        return MSC_OK;
    }
    while (more) {
        cJSON *item = NULL;
        MSC_TRY(parse_value(p, &item));
        if (array) {
            cJSON_AddItemToArray(array, item);
        } else {
            MSC_TRY(take_element(p, item));
        }
        MSC_TRY(parse_separator(p, ']', &more));
    }
    return MSC_OK;
}

static enum msc_status parse_list_as_text(struct parser *p, cJSON **out) {
    size_t start = p->at;
    p->depth++;
    enum msc_status status = parse_array(p, NULL);
    p->depth--;
    MSC_TRY(status);
    msc_str_clear(&p->scratch);
    msc_str_append_n(&p->scratch, p->text + start, p->at - start);
    *out = p->scratch.failed ? NULL : cJSON_CreateRaw(msc_str_text(&p->scratch));
    return *out ? MSC_OK : fail_memory(p);
}

static int compare_keys(const void *a, const void *b) {
    const struct key_place *left = a;
    const struct key_place *right = b;
    int order = strcmp(left->key, right->key);
    return order != 0 ? order : (left->offset > right->offset) - (left->offset < right->offset);
}

// Sorting finds duplicates among thousands of tensor names without comparing every pair.
static enum msc_status check_duplicates(struct parser *p, size_t first_key) {
    struct key_place *keys = p->keys + first_key;
    size_t n = p->n_keys - first_key;
    const struct key_place *duplicate = NULL;
    if (n > 1) {
        qsort(keys, n, sizeof *keys, compare_keys);
    }
    for (size_t i = 1; i < n; i++) {
        if (strcmp(keys[i - 1].key, keys[i].key) == 0 &&
            (!duplicate || keys[i].offset < duplicate->offset)) {
            duplicate = &keys[i];
        }
    }
    p->n_keys = first_key;
    return duplicate ? fail_at(p, duplicate->offset, "duplicate key ", duplicate->key) : MSC_OK;
}

static enum msc_status parse_member_value(struct parser *p, const char *key, cJSON **out) {
    skip_space(p);
    if (p->depth == 2 && p->is_in_lists && json_parse_peek(p) == '[') {
        return parse_list_as_text(p, out);
    }
    bool is_outermost = p->depth == 1 && p->lists_key;
    p->is_in_lists = is_outermost ? strcmp(key, p->lists_key) == 0 : p->is_in_lists;
    return parse_value(p, out);
}

static enum msc_status parse_member(struct parser *p, cJSON *object) {
    skip_space(p);
    size_t offset = p->at;
    if (json_parse_peek(p) != '"') {
        return fail_expected(p, "a key in double quotes");
    }
    MSC_TRY(parse_text(p));
    // Parsing the value overwrites the scratch buffer, which holds the key. The key is therefore
    // added to the tree first, with null as its value.
    cJSON *member = cJSON_AddNullToObject(object, msc_str_text(&p->scratch));
    if (!member || msc_grow(&p->keys, &p->key_capacity, p->n_keys + 1, sizeof *p->keys) != MSC_OK) {
        return fail_memory(p);
    }
    p->keys[p->n_keys++] = (struct key_place){.key = member->string, .offset = offset};
    skip_space(p);
    if (json_parse_peek(p) != ':') {
        return fail_expected(p, "':' after a key");
    }
    p->at++;
    cJSON *value = NULL;
    MSC_TRY(parse_member_value(p, member->string, &value));
    value->string = member->string;
    member->string = NULL;
    cJSON_ReplaceItemViaPointer(object, member, value);
    return MSC_OK;
}

static enum msc_status parse_object(struct parser *p, cJSON *object) {
    bool more = true;
    size_t first_key = p->n_keys;
    p->at++;
    skip_space(p);
    if (json_parse_peek(p) == '}') {
        p->at++;
        return MSC_OK;
    }
    while (more) {
        MSC_TRY(parse_member(p, object));
        MSC_TRY(parse_separator(p, '}', &more));
    }
    return check_duplicates(p, first_key);
}

static enum msc_status parse_container(struct parser *p, cJSON **out) {
    bool is_array = json_parse_peek(p) == '[';
    if (p->depth >= DEEPEST) {
        return fail_at(p, p->at, "nested deeper than 200 levels", "");
    }
    cJSON *container = is_array ? cJSON_CreateArray() : cJSON_CreateObject();
    if (!container) {
        return fail_memory(p);
    }
    p->depth++;
    enum msc_status status = is_array ? parse_array(p, container) : parse_object(p, container);
    p->depth--;
    if (status != MSC_OK) {
        cJSON_Delete(container);
        return status;
    }
    *out = container;
    return MSC_OK;
}

static enum msc_status parse_value(struct parser *p, cJSON **out) {
    skip_space(p);
    int c = json_parse_peek(p);
    if (c == '{' || c == '[') {
        return parse_container(p, out);
    }
    if (c == '"') {
        MSC_TRY(parse_text(p));
        *out = cJSON_CreateString(msc_str_text(&p->scratch));
        return *out ? MSC_OK : fail_memory(p);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        return parse_number(p, out);
    }
    return parse_word(p, out);
}

// Some editors begin UTF-8 files with a byte-order mark.
static void skip_mark(struct parser *p) {
    p->at += p->length >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

// Checks that nothing follows the value, then releases the parser.
static enum msc_status end_parser(struct parser *p, enum msc_status status) {
    if (status == MSC_OK) {
        skip_space(p);
        if (p->at < p->length) {
            status = fail_at(p, p->at, "text after the end of the value", "");
        }
    }
    msc_str_finish(&p->scratch);
    msc_free(p->keys);
    return status;
}

enum msc_status msc_json_parse(cJSON **out, const char *text, size_t length, const char *name) {
    return msc_json_parse_lists(out, text, length, name, NULL);
}

enum msc_status msc_json_each(const char *text, size_t length, const char *name,
                              enum msc_status (*take)(void *payload, const cJSON *element),
                              void *payload) {
    struct parser p = {
        .text = text, .length = length, .name = name, .take = take, .payload = payload};
    skip_mark(&p);
    skip_space(&p);
    bool is_list = json_parse_peek(&p) == '[';
    return end_parser(&p, is_list ? parse_array(&p, NULL) : fail_expected(&p, "a list"));
}

enum msc_status msc_json_parse_lists(cJSON **out, const char *text, size_t length, const char *name,
                                     const char *key) {
    struct parser p = {.text = text, .length = length, .name = name, .lists_key = key};
    cJSON *tree = NULL;
    skip_mark(&p);
    enum msc_status status = parse_value(&p, &tree);
    status = end_parser(&p, status);
    if (status != MSC_OK) {
        cJSON_Delete(tree);
        return status;
    }
    *out = tree;
    return MSC_OK;
}

enum msc_status msc_json_load(cJSON **out, const char *path) {
    char *text = NULL;
    size_t n_bytes = 0;
    MSC_TRY(msc_file_read(&text, &n_bytes, path));
    enum msc_status status = msc_json_parse(out, text, n_bytes, path);
    msc_free(text);
    return status;
}
