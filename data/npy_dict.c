#include "data/npy_format.h"

#include <assert.h>
#include <string.h>

// A position in the header's text.
struct cursor {
    const char *text;
    size_t length;
    size_t at;
    size_t offset; // offset of the text in the file
    const char *name;
};

static enum msc_status npy_dict_fail_at(const struct cursor *c, const char *expected) {
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: byte %zu: expected %s in the header; write the file again with numpy.save",
                    c->name, c->offset + c->at, expected);
}

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void npy_dict_skip_space(struct cursor *c) {
    while (c->at < c->length && is_space(c->text[c->at])) {
        c->at++;
    }
}

// Skips blanks, and consumes `symbol` if it follows.
static bool npy_dict_take(struct cursor *c, char symbol) {
    npy_dict_skip_space(c);
    if (c->at < c->length && c->text[c->at] == symbol) {
        c->at++;
        return true;
    }
    return false;
}

static bool take_word(struct cursor *c, const char *word) {
    npy_dict_skip_space(c);
    size_t n = strlen(word);
    if (c->length - c->at < n || memcmp(c->text + c->at, word, n) != 0) {
        return false;
    }
    c->at += n;
    return true;
}

#define WORD_BYTES 32

// Reads a Python string in single or double quotes. Escapes are not needed for keys and type names.
static enum msc_status read_string(char word[WORD_BYTES], struct cursor *c) {
    char quote = '\'';
    if (!npy_dict_take(c, '\'')) {
        if (!npy_dict_take(c, '"')) {
            return npy_dict_fail_at(c, "a quoted name");
        }
        quote = '"';
    }
    size_t n = 0;
    while (c->at < c->length && c->text[c->at] != quote) {
        if (n + 1 >= WORD_BYTES || c->text[c->at] == '\\') {
            return npy_dict_fail_at(c, "a short quoted name");
        }
        word[n++] = c->text[c->at++];
    }
    word[n] = '\0';
    return npy_dict_take(c, quote) ? MSC_OK : npy_dict_fail_at(c, "a closing quote");
}

static enum msc_status read_bool(bool *out, struct cursor *c) {
    *out = take_word(c, "True");
    return *out || take_word(c, "False") ? MSC_OK : npy_dict_fail_at(c, "True or False");
}

static enum msc_status read_dim(int64_t *out, struct cursor *c) {
    npy_dict_skip_space(c);
    size_t start = c->at;
    int64_t value = 0;
    while (c->at < c->length && c->text[c->at] >= '0' && c->text[c->at] <= '9') {
        int digit = c->text[c->at] - '0';
        if (value > (INT64_MAX - digit) / 10) {
            return npy_dict_fail_at(c, "a dim below 2^63");
        }
        value = value * 10 + digit;
        c->at++;
    }
    if (c->at == start) {
        return npy_dict_fail_at(c, "a dim, zero or more");
    }
    npy_dict_take(c, 'L'); // Python 2 wrote this suffix after long integers
    *out = value;
    return MSC_OK;
}

static enum msc_status read_shape(struct msc_npy_header *header, struct cursor *c) {
    if (!npy_dict_take(c, '(')) {
        return npy_dict_fail_at(c, "the shape's '('");
    }
    header->n_dims = 0;
    while (!npy_dict_take(c, ')')) {
        if (header->n_dims == MSC_MAX_DIMS) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "%s: byte %zu: the array has more than %d dims; reshape it to fewer",
                            c->name, c->offset + c->at, MSC_MAX_DIMS);
        }
        MSC_TRY(read_dim(&header->dims[header->n_dims++], c));
        if (!npy_dict_take(c, ',')) {
            if (!npy_dict_take(c, ')')) {
                return npy_dict_fail_at(c, "',' or ')' after a dim");
            }
            break;
        }
    }
    return MSC_OK;
}

static const char *const codes[MSC_DTYPE_COUNT] = {
    [MSC_DTYPE_F32] = "<f4", [MSC_DTYPE_F16] = "<f2", [MSC_DTYPE_F64] = "<f8",
    [MSC_DTYPE_I8] = "|i1",  [MSC_DTYPE_I16] = "<i2", [MSC_DTYPE_I32] = "<i4",
    [MSC_DTYPE_I64] = "<i8", [MSC_DTYPE_U8] = "|u1",  [MSC_DTYPE_U16] = "<u2",
    [MSC_DTYPE_U32] = "<u4", [MSC_DTYPE_U64] = "<u8", [MSC_DTYPE_BOOL] = "|b1",
};

const char *msc_npy__code(enum msc_dtype dtype) {
    return codes[dtype];
}

struct refused_row {
    char kind;
    const char *words;
};

static const struct refused_row refused[] = {
    {'O', "Python objects"}, {'U', "strings"},     {'S', "strings"},
    {'a', "strings"},        {'V', "raw records"}, {'c', "complex numbers"},
    {'M', "dates"},          {'m', "time spans"},  {'f', "floats of a width that ONNX lacks"},
};

static enum msc_status read_type(struct msc_npy_header *header, struct cursor *c) {
    npy_dict_skip_space(c);
    size_t place = c->offset + c->at;
    if (c->at < c->length && (c->text[c->at] == '[' || c->text[c->at] == '(')) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "%s: byte %zu: the array has named fields; save each field as an array of "
                        "its own",
                        c->name, place);
    }
    char word[WORD_BYTES];
    MSC_TRY(read_string(word, c));
    const char *code = word[0] && strchr("<>|=", word[0]) ? word + 1 : word;
    header->is_big_endian = word[0] == '>';
    for (int i = 0; i < MSC_DTYPE_COUNT; i++) {
        if (codes[i] && strcmp(codes[i] + 1, code) == 0) {
            header->dtype = (enum msc_dtype)i;
            return MSC_OK;
        }
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (code[0] == refused[i].kind) {
            return MSC_FAIL(MSC_E_UNSUPPORTED,
                            "%s: byte %zu: element type '%s' (%s) cannot be read; save it with "
                            "array.astype(numpy.float32)",
                            c->name, place, word, refused[i].words);
        }
    }
    return MSC_FAIL(MSC_E_FORMAT,
                    "%s: byte %zu: unknown element type '%s'; write the file again "
                    "with numpy.save",
                    c->name, place, word);
}

enum { HAS_TYPE = 1, HAS_ORDER = 2, HAS_SHAPE = 4, HAS_ALL = 7 };

static enum msc_status npy_dict_read_member(struct msc_npy_header *header, struct cursor *c,
                                            unsigned *seen) {
    npy_dict_skip_space(c);
    struct cursor start = *c;
    char key[WORD_BYTES];
    MSC_TRY(read_string(key, c));
    if (!npy_dict_take(c, ':')) {
        return npy_dict_fail_at(c, "':' after a key");
    }
    unsigned flag;
    enum msc_status status;
    if (strcmp(key, "descr") == 0) {
        flag = HAS_TYPE;
        status = read_type(header, c);
    } else if (strcmp(key, "fortran_order") == 0) {
        flag = HAS_ORDER;
        status = read_bool(&header->is_fortran_order, c);
    } else if (strcmp(key, "shape") == 0) {
        flag = HAS_SHAPE;
        status = read_shape(header, c);
    } else {
        return npy_dict_fail_at(&start, "only 'descr', 'fortran_order' and 'shape'");
    }
    if (status == MSC_OK && (*seen & flag)) {
        return npy_dict_fail_at(&start, "each key once");
    }
    *seen |= flag;
    return status;
}

static enum msc_status set_n_bytes(struct msc_npy_header *header, const struct cursor *c) {
    int64_t n = msc_dims_product(header->n_dims, header->dims);
    size_t element_bytes = msc_dtype_bytes(header->dtype);
    if (n < 0 || (uint64_t)n > (uint64_t)PTRDIFF_MAX / element_bytes) {
        char text[MSC_DIMS_TEXT_BYTES];
        return MSC_FAIL(MSC_E_FORMAT,
                        "%s: byte %zu: shape %s of %s overflows; the header is damaged, write the "
                        "file again",
                        c->name, c->offset, msc_dims_format(text, header->n_dims, header->dims),
                        msc_dtype_name(header->dtype));
    }
    header->n_bytes = (size_t)n * element_bytes;
    return MSC_OK;
}

enum msc_status msc_npy__parse_dict(struct msc_npy_header *header, const char *text, size_t length,
                                    size_t offset, const char *name) {
    *header = (struct msc_npy_header){0};
    struct cursor c = {.text = text, .length = length, .offset = offset, .name = name};
    if (!npy_dict_take(&c, '{')) {
        return npy_dict_fail_at(&c, "'{'");
    }
    unsigned seen = 0;
    while (!npy_dict_take(&c, '}')) {
        MSC_TRY(npy_dict_read_member(header, &c, &seen));
        if (!npy_dict_take(&c, ',')) {
            if (!npy_dict_take(&c, '}')) {
                return npy_dict_fail_at(&c, "',' or '}' after a value");
            }
            break;
        }
    }
    if (seen != HAS_ALL) {
        return npy_dict_fail_at(&c, "'descr', 'fortran_order' and 'shape'");
    }
    npy_dict_skip_space(&c);
    if (c.at < c.length) {
        return npy_dict_fail_at(&c, "only blanks after '}'");
    }
    return set_n_bytes(header, &c);
}
