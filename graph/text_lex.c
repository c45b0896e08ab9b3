// Splits the text form into tokens, and writes names so that they read back as tokens.
#include "graph/text.h"

#include "base/alloc.h"
#include "base/shown_internal.h"
#include "base/str.h"
#include "base/utf8.h"

#include <string.h>

// Characters that end a word, and characters that end a value. White space and control characters
// end both.
#define MARKS ",|<>(){}="
#define NOT_IN_WORDS MARKS "\"#\\"
#define NOT_IN_VALUES "\"#\\"

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// True if the character belongs to a word that must not contain the characters of `without`.
static bool is_in_word(char c, const char *without) {
    return (unsigned char)c > ' ' && c != 0x7f && strchr(without, c) == NULL;
}

static void step(struct msc_text_reader *r) {
    char c = *r->at++;
    // Bytes 10xxxxxx continue a character of UTF-8.
    r->column = c == '\n' ? 1 : r->column + (((unsigned char)c & 0xc0) != 0x80);
    r->line += c == '\n';
}

enum msc_status msc_text_at(const struct msc_text_reader *r, const struct msc_text_token *token,
                            enum msc_status status) {
    return status == MSC_OK ? MSC_OK
                            : msc_status_prefix(status == MSC_E_INVALID ? MSC_E_FORMAT : status,
                                                "%s:%d:%d", r->name, token->line, token->column);
}

enum msc_status msc_text_unexpected(const struct msc_text_reader *r, const char *expected) {
    const struct msc_text_token *t = &r->token;
    if (t->kind == MSC_TEXT_END) {
        return MSC_TEXT_FAIL(r, t, "expected %s, but the text ends here", expected);
    }
    return MSC_TEXT_FAIL(r, t, "expected %s, found '%s%s'", expected, t->text,
                         t->kind == MSC_TEXT_LABEL ? ":" : "");
}

// The token that begins at the reader's position, without its text.
static struct msc_text_token begin_token(const struct msc_text_reader *r, enum msc_text_kind kind) {
    return (struct msc_text_token){.kind = kind, .line = r->line, .column = r->column, .text = ""};
}

static void skip_spaces_and_comments(struct msc_text_reader *r) {
    bool is_comment = false;
    while (r->at < r->end && (is_comment || is_space(*r->at) || *r->at == '#')) {
        is_comment = *r->at != '\n' && (is_comment || *r->at == '#');
        step(r);
    }
}

// Reads n hexadecimal digits. False if there are fewer.
static bool read_hex(uint32_t *out, struct msc_text_reader *r, int n) {
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    *out = 0;
    for (int i = 0; i < n; i++) {
        const char *digit = r->at < r->end && *r->at != '\0' ? strchr(digits, *r->at) : NULL;
        if (digit == NULL) {
            return false;
        }
        *out = *out * 16 + (uint32_t)(digit - digits) % 16;
        step(r);
    }
    return true;
}

static void append_utf8(struct msc_str *out, uint32_t code) {
    const unsigned char bytes[] = {(unsigned char)(0xe0 | (code >> 12)),
                                   (unsigned char)(0x80 | ((code >> 6) & 0x3f)),
                                   (unsigned char)(0x80 | (code & 0x3f))};
    if (code < 0x80) {
        msc_str_char(out, (char)code);
    } else if (code < 0x800) {
        msc_str_char(out, (char)(0xc0 | (code >> 6)));
        msc_str_char(out, (char)bytes[2]);
    } else {
        msc_str_append_n(out, (const char *)bytes, sizeof bytes);
    }
}

// Reads the rest of an escape, after the backslash.
static bool read_escape(struct msc_str *out, struct msc_text_reader *r) {
    static const char letters[] = "nrt\"\\", meanings[] = "\n\r\t\"\\";
    char letter = r->at < r->end ? *r->at : '\0';
    uint32_t code;
    if (letter == 'x' || letter == 'u') {
        step(r);
        if (!read_hex(&code, r, letter == 'x' ? 2 : 4) || code == 0 ||
            (code >= 0xd800 && code <= 0xdfff)) {
            return false;
        }
        if (letter == 'x') {
            msc_str_char(out, (char)code);
        } else {
            append_utf8(out, code);
        }
        return true;
    }
    const char *found = letter == '\0' ? NULL : strchr(letters, letter);
    if (found != NULL) {
        step(r);
        msc_str_char(out, meanings[found - letters]);
    }
    return found != NULL;
}

static enum msc_status keep(const char **out, struct msc_text_reader *r, struct msc_str *text) {
    *out = msc_str_keep(text, r->arena);
    return MSC_ALLOCATED(*out);
}

static enum msc_status read_quoted(struct msc_text_token *out, struct msc_text_reader *r) {
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    *out = begin_token(r, MSC_TEXT_QUOTED);
    step(r);
    while (status == MSC_OK && r->at < r->end && *r->at != '"') {
        struct msc_text_token here = begin_token(r, MSC_TEXT_NONE);
        char c = *r->at;
        step(r);
        if (c == '\\') {
            status = read_escape(&text, r)
                         ? MSC_OK
                         : MSC_TEXT_FAIL(r, &here,
                                         "unknown escape; write \\n, \\r, \\t, \\\", "
                                         "\\\\, \\x1b (byte) or \\u202e (character)");
        } else if ((unsigned char)c < ' ' || c == 0x7f) {
            status = MSC_TEXT_FAIL(r, out,
                                   "the quotes are not closed in this line; in quotes, "
                                   "write line breaks as \\n and tabs as \\t");
        } else {
            msc_str_char(&text, c);
        }
    }
    if (status == MSC_OK && r->at == r->end) {
        status = MSC_TEXT_FAIL(r, out, "the quotes are not closed");
    }
    if (status != MSC_OK) {
        msc_str_finish(&text);
        return status;
    }
    step(r);
    return keep(&out->text, r, &text);
}

// Reads characters up to one of `without`, white space or a control character.
static enum msc_status read_word(struct msc_text_token *out, struct msc_text_reader *r,
                                 const char *without) {
    const char *begin = r->at;
    *out = begin_token(r, MSC_TEXT_WORD);
    while (r->at < r->end && is_in_word(*r->at, without)) {
        step(r);
    }
    size_t length = (size_t)(r->at - begin);
    out->text = msc_arena_strndup(r->arena, begin, length);
    return MSC_ALLOCATED(out->text);
}

static enum msc_status fail_character(const struct msc_text_reader *r) {
    const struct msc_text_token here = begin_token(r, MSC_TEXT_NONE);
    char shown[MSC_SHOWN_BYTES] = {*r->at};
    if (*r->at != '"' && *r->at != '\\') {
        msc_shown__escape(shown, (unsigned char)*r->at, *r->at);
    }
    return MSC_TEXT_FAIL(r, &here,
                         "the character %s needs quotes around the whole name or value: "
                         "\"a\\n\\\"b\\\"\"",
                         shown);
}

enum msc_status msc_text_next(struct msc_text_reader *r) {
    struct msc_text_token *t = &r->token;
    skip_spaces_and_comments(r);
    *t = begin_token(r, MSC_TEXT_END);
    if (r->at == r->end) {
        return MSC_OK;
    }
    if (*r->at == '"') {
        return read_quoted(t, r);
    }
    if (strchr(MARKS, *r->at) != NULL) {
        t->kind = MSC_TEXT_MARK;
        t->text = msc_arena_strndup(r->arena, r->at, 1);
        step(r);
        return MSC_ALLOCATED(t->text);
    }
    if (!is_in_word(*r->at, NOT_IN_WORDS)) {
        return fail_character(r);
    }
    MSC_TRY(read_word(t, r, NOT_IN_WORDS));
    size_t length = strlen(t->text);
    if (length > 1 && t->text[length - 1] == ':') {
        t->kind = MSC_TEXT_LABEL;
        ((char *)t->text)[length - 1] = '\0';
    }
    return MSC_OK;
}

enum msc_status msc_text_open(struct msc_text_reader *r, struct msc_arena *arena, const char *text,
                              size_t length, const char *name) {
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    MSC_TRY(msc_utf8_check_file(text, length, name));
    size_t n_mark = strlen(byte_order_mark);
    bool has_mark = length >= n_mark && memcmp(text, byte_order_mark, n_mark) == 0;
    *r = (struct msc_text_reader){
        .name = name,
        .arena = arena,
        .at = text + (has_mark ? n_mark : 0),
        .end = text + length,
        .line = 1,
        .column = 1,
    };
    return msc_text_next(r);
}

bool msc_text_is(const struct msc_text_reader *r, char mark) {
    return r->token.kind == MSC_TEXT_MARK && r->token.text[0] == mark;
}

bool msc_text_is_label(const struct msc_text_reader *r, const char *label) {
    return r->token.kind == MSC_TEXT_LABEL && strcmp(r->token.text, label) == 0;
}

bool msc_text_is_word(const struct msc_text_reader *r, const char *word) {
    return r->token.kind == MSC_TEXT_WORD && strcmp(r->token.text, word) == 0;
}

enum msc_status msc_text_expect(struct msc_text_reader *r, char mark) {
    const char expected[] = {'\'', mark, '\'', '\0'};
    return msc_text_is(r, mark) ? msc_text_next(r) : msc_text_unexpected(r, expected);
}

enum msc_status msc_text_take(struct msc_text_token *out, struct msc_text_reader *r,
                              const char *what) {
    if (r->token.kind != MSC_TEXT_WORD && r->token.kind != MSC_TEXT_QUOTED) {
        return msc_text_unexpected(r, what);
    }
    *out = r->token;
    return msc_text_next(r);
}

enum msc_status msc_text_take_value(struct msc_text_token *out, struct msc_text_reader *r) {
    if (!msc_text_is(r, '=')) {
        return msc_text_unexpected(r, "'=' and a value");
    }
    if (r->at < r->end && *r->at == '"') {
        MSC_TRY(read_quoted(out, r));
    } else {
        MSC_TRY(read_word(out, r, NOT_IN_VALUES));
    }
    if (r->at < r->end && !is_space(*r->at) && *r->at != '#') {
        return out->kind == MSC_TEXT_QUOTED
                   ? MSC_TEXT_FAIL(r, out, "expected a space after the quotes of a value")
                   : fail_character(r);
    }
    return msc_text_next(r);
}

enum msc_status msc_text_grow(void *items, size_t n, size_t item_bytes, struct msc_text_reader *r) {
    if ((n & (n - 1)) != 0) { // room is a power of two, and doubles when it is full
        return MSC_OK;
    }
    void *larger = msc_arena_array(r->arena, n == 0 ? 1 : 2 * n, item_bytes), *present;
    MSC_TRY(MSC_ALLOCATED(larger));
    memcpy(&present, items, sizeof(present));
    if (n > 0) {
        memcpy(larger, present, n * item_bytes);
    }
    memcpy(items, &larger, sizeof(larger));
    return MSC_OK;
}

// ---- Writing ----------------------------------------------------------------------------------

static bool reads_back(const char *text, const char *without) {
    while (*text != '\0') {
        size_t n;
        if (!is_in_word(*text, without) || msc_shown__is_obeyed(msc_shown__next(&n, text))) {
            return false;
        }
        text += n;
    }
    return true;
}

static void write_quoted(struct msc_str *out, const char *text) {
    msc_str_char(out, '"');
    while (*text != '\0') {
        char escape[MSC_SHOWN_BYTES];
        size_t n;
        uint32_t code = msc_shown__next(&n, text);
        if (msc_shown__is_obeyed(code)) {
            msc_shown__escape(escape, code, *text);
            msc_str_append(out, escape);
        } else {
            msc_str_append(out, code == '"' || code == '\\' ? "\\" : "");
            msc_str_append_n(out, text, n);
        }
        text += n;
    }
    msc_str_char(out, '"');
}

void msc_text_write_name(struct msc_str *out, const char *name) {
    size_t length = strlen(name);
    if (length > 0 && name[length - 1] != ':' && reads_back(name, NOT_IN_WORDS)) {
        msc_str_append(out, name);
    } else {
        write_quoted(out, name);
    }
}

void msc_text_write_symbol(struct msc_str *out, const char *name) {
    int64_t number;
    if (msc_parse_i64(&number, name)) {
        write_quoted(out, name);
    } else {
        msc_text_write_name(out, name);
    }
}

void msc_text_write_value(struct msc_str *out, const char *value) {
    if (reads_back(value, NOT_IN_VALUES)) {
        msc_str_append(out, value);
    } else {
        write_quoted(out, value);
    }
}
