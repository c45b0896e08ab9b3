// Reads .tflite files for tests, independently of the writer: FlatBuffers by their published binary
// format, with the numbers of fields of TensorFlow Lite's schema.fbs.
#ifndef MSC_TESTS_TFLITE_FILE_H
#define MSC_TESTS_TFLITE_FILE_H

#include "base/file.h"

#include "tests/msc_test.h"

#include <stdint.h>
#include <string.h>

static inline uint32_t read_u32(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline int32_t read_i32(const unsigned char *at) {
    return (int32_t)read_u32(at);
}

// The table, vector or string that a distance refers to.
static inline const unsigned char *follow(const unsigned char *at) {
    return at + read_u32(at);
}

// A field of a table; NULL if it is absent.
static inline const unsigned char *field(const unsigned char *table, int i) {
    const unsigned char *vtable = table - read_i32(table);
    int n = ((vtable[0] | vtable[1] << 8) - 4) / 2;
    int distance = i < n ? vtable[4 + 2 * i] | vtable[5 + 2 * i] << 8 : 0;
    return distance == 0 ? NULL : table + distance;
}

static inline int32_t int_field(const unsigned char *table, int i) {
    const unsigned char *at = field(table, i);
    return at == NULL ? 0 : read_i32(at);
}

static inline int byte_field(const unsigned char *table, int i) {
    const unsigned char *at = field(table, i);
    return at == NULL ? 0 : (int8_t)*at;
}

// The table, vector or string that a field refers to.
static inline const unsigned char *child(const unsigned char *table, int i) {
    const unsigned char *at = field(table, i);
    assert_non_null(at);
    return follow(at);
}

static inline uint32_t length(const unsigned char *vector) {
    return read_u32(vector);
}

// Element i of a vector of int32, and of a vector of tables.
static inline int32_t int_at(const unsigned char *vector, uint32_t i) {
    assert_true(i < length(vector));
    return read_i32(vector + 4 + 4 * i);
}

static inline const unsigned char *table_at(const unsigned char *vector, uint32_t i) {
    assert_true(i < length(vector));
    return follow(vector + 4 + 4 * i);
}

struct tflite_file {
    const void *data;
    size_t n_bytes;
    const unsigned char *model, *graph, *tensors, *operators;
};

static inline void open_tflite(struct tflite_file *f, const char *path) {
    assert_ok(msc_file_map(&f->data, &f->n_bytes, path));
    const unsigned char *bytes = f->data;
    assert_true(f->n_bytes > 8);
    assert_memory_equal(bytes + 4, "TFL3", 4);
    f->model = follow(bytes);
    assert_int_equal(int_field(f->model, 0), 3);
    f->graph = table_at(child(f->model, 2), 0);
    f->tensors = child(f->graph, 0);
    f->operators = child(f->graph, 3);
}

static inline void close_tflite(struct tflite_file *f) {
    msc_file_unmap(f->data, f->n_bytes);
}

// The operator's code in BuiltinOperator.
static inline int32_t code_of(const struct tflite_file *f, uint32_t op) {
    return int_field(
        table_at(child(f->model, 1), (uint32_t)int_field(table_at(f->operators, op), 0)), 3);
}

// Checks the codes of all operators, in their order.
static inline void check_codes(const struct tflite_file *f, uint32_t n, const int32_t expected[]) {
    assert_int_equal(length(f->operators), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(code_of(f, i), expected[i]);
    }
}

static inline const unsigned char *options_of(const struct tflite_file *f, uint32_t op) {
    return child(table_at(f->operators, op), 4);
}

// The tensor that an operator reads or writes.
static inline const unsigned char *input_of(const struct tflite_file *f, uint32_t op, uint32_t i) {
    return table_at(f->tensors, (uint32_t)int_at(child(table_at(f->operators, op), 1), i));
}

static inline const unsigned char *output_of_op(const struct tflite_file *f, uint32_t op) {
    return table_at(f->tensors, (uint32_t)int_at(child(table_at(f->operators, op), 2), 0));
}

static inline void check_name(const unsigned char *tensor, const char *expected) {
    const unsigned char *name = child(tensor, 3);
    assert_int_equal(length(name), strlen(expected));
    assert_memory_equal(name + 4, expected, strlen(expected) + 1);
}

static inline void check_shape(const unsigned char *tensor, uint32_t n, const int32_t expected[]) {
    const unsigned char *shape = child(tensor, 0);
    assert_int_equal(length(shape), n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(int_at(shape, i), expected[i]);
    }
}

// Checks the elements of a constant, which begin at a multiple of 16 bytes.
static inline void check_data(const struct tflite_file *f, const unsigned char *tensor, int type,
                              const void *expected, size_t n_bytes) {
    assert_int_equal(byte_field(tensor, 1), type);
    const unsigned char *buffer = table_at(child(f->model, 4), (uint32_t)int_field(tensor, 2));
    const unsigned char *data = child(buffer, 0);
    assert_int_equal(length(data), n_bytes);
    assert_int_equal((size_t)(data + 4 - (const unsigned char *)f->data) % 16, 0);
    assert_memory_equal(data + 4, expected, n_bytes);
}

// Checks scales, zero points and their axis.
static inline void check_quant(const unsigned char *tensor, uint32_t n, const float scales[],
                               const int64_t zero_points[], int32_t axis) {
    const unsigned char *quant = child(tensor, 4);
    assert_int_equal(length(child(quant, 2)), n);
    assert_memory_equal(child(quant, 2) + 4, scales, n * sizeof(scales[0]));
    assert_int_equal(length(child(quant, 3)), n);
    assert_memory_equal(child(quant, 3) + 4, zero_points, n * sizeof(zero_points[0]));
    assert_int_equal(int_field(quant, 6), axis);
}

#endif
