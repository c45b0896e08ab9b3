// Images: PNG, JPEG and BMP decoding, resizing, folders as datasets, and damaged or oversized
// files. Expected pixels come from PIL (files/make_files.py).
#include "data/image.h"

#include "data_test.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum msc_status decode(const char *path) {
    struct msc_array *a = NULL;
    enum msc_status status = msc_image__decode(&a, path, 3);
    msc_array_release(a);
    return status;
}

// Largest and mean absolute difference of two arrays of the same shape.
static void compare(double *largest, double *average, const struct msc_array *a,
                    const struct msc_array *b) {
    assert_int_equal(msc_array_n_elements(a), msc_array_n_elements(b));
    *largest = 0.0;
    *average = 0.0;
    for (int64_t i = 0; i < msc_array_n_elements(a); i++) {
        double difference = fabs(msc_array_get_double(a, i) - msc_array_get_double(b, i));
        *largest = fmax(*largest, difference);
        *average += difference / (double)msc_array_n_elements(a);
    }
}

static void check_decoded(const char *image, int channels, const char *expected_name,
                          double tolerance) {
    char path[PATH_BYTES];
    struct msc_array *a = NULL, *expected = NULL;
    assert_int_equal(msc_image__decode(&a, test_file(path, image), channels), MSC_OK);
    assert_int_equal(msc_npy_load(&expected, test_file(path, expected_name)), MSC_OK);
    assert_int_equal(msc_array_dim(a, 0), msc_array_dim(expected, 0));
    assert_int_equal(msc_array_dim(a, 1), msc_array_dim(expected, 1));
    assert_int_equal(msc_array_dim(a, 2), channels);
    double largest, average;
    compare(&largest, &average, a, expected);
    assert_true(largest <= tolerance);
    msc_array_release(a);
    msc_array_release(expected);
}

static void test_data_image__decode(void **state) {
    (void)state;
    check_decoded("images/a.png", 3, "images_a.npy", 0.0);
    // PIL rounds grey differently. JPEG decoders may differ in the inverse transform and in chroma
    // upsampling.
    check_decoded("images/a.png", 1, "images_a_grey.npy", 1.0);
    check_decoded("images/b.jpg", 3, "images_b.npy", 4.0);
}

static void test_data_image__resize(void **state) {
    (void)state;
    static const char *const names[] = {"images/a.png", "images/c.BMP"};
    // Image a shrinks along both axes, image c grows along both.
    static const int64_t rows[] = {0, 2};
    char path[PATH_BYTES];
    struct msc_array *all = NULL;
    assert_int_equal(msc_npy_load(&all, test_file(path, "images_10x12.npy")), MSC_OK);
    for (int i = 0; i < 2; i++) {
        struct msc_array *pixels = NULL, *resized = NULL, *expected = NULL;
        assert_int_equal(msc_array_rows(&expected, all, rows[i], 1), MSC_OK);
        assert_int_equal(msc_image__decode(&pixels, test_file(path, names[i]), 3), MSC_OK);
        assert_int_equal(msc_image__resize(&resized, pixels, 10, 12), MSC_OK);
        double largest, average;
        compare(&largest, &average, resized, expected);
        // PIL's weights are 22-bit fixed-point numbers, so ties may round either way.
        assert_true(largest <= 1.0 && average <= 0.03);
        msc_array_release(pixels);
        msc_array_release(resized);
        msc_array_release(expected);
    }
    msc_array_release(all);
}

static const struct msc_input_spec spec_10x12 = {
    .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 4, .dims = {-1, 3, 10, 12}, .is_batched = true};

static struct msc_dataset_options folder_options(char path[PATH_BYTES]) {
    struct msc_dataset_options o = MSC_DATASET_OPTIONS_INIT;
    o.inputs = test_file(path, "images");
    const double mean[] = {0.485, 0.456, 0.406}, std[] = {0.229, 0.224, 0.225};
    memcpy(o.image.mean, mean, sizeof mean);
    memcpy(o.image.std, std, sizeof std);
    return o;
}

static void test_data_image__folder(void **state) {
    (void)state;
    char path[PATH_BYTES], file[PATH_BYTES];
    struct msc_dataset_options o = folder_options(path);
    int64_t n = 0;
    assert_int_equal(msc_dataset_count(&n, &o, &spec_10x12, 1), MSC_OK);
    assert_int_equal(n, 3);
    o.batch = 2;
    struct msc_dataset *data = NULL;
    assert_int_equal(msc_dataset_load(&data, &o, &spec_10x12, 1), MSC_OK);
    assert_int_equal(msc_dataset_n_samples(data), 3);
    assert_int_equal(msc_dataset_n_batches(data), 2);
    struct msc_array *all = NULL, *expected = NULL;
    assert_int_equal(msc_npy_load(&all, test_file(file, "images_10x12_normalised.npy")), MSC_OK);
    for (size_t b = 0; b < 2; b++) {
        assert_int_equal(msc_array_rows(&expected, all, (int64_t)b * 2, b == 0 ? 2 : 1), MSC_OK);
        double largest, average;
        compare(&largest, &average, msc_dataset_batch(data, b, 0), expected);
        // Tolerances are in levels of 1/255, divided by the smallest std. Batch 0 contains the
        // JPEG.
        double level = 1.0 / 255 / 0.224;
        assert_true(largest <= (b == 0 ? 3.01 : 1.01) * level && average <= 0.5 * level);
        msc_array_release(expected);
    }
    msc_array_release(all);
    double min, max;
    msc_dataset_range(&min, &max, data, 0);
    assert_true(min >= -0.485 / 0.229 - 1e-6 && min < -1.5 && max > 2.0 && max < 2.65);
    msc_dataset_destroy(data);
}

static void test_data_image__layouts(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct msc_dataset_options o = folder_options(path);
    struct msc_input_spec last = {.name = "x",
                                  .dtype = MSC_DTYPE_F32,
                                  .n_dims = 4,
                                  .dims = {-1, 10, 12, 3},
                                  .is_batched = true};
    struct msc_input_spec bytes = last;
    bytes.dtype = MSC_DTYPE_U8;
    struct msc_dataset *first = NULL, *second = NULL, *raw = NULL;
    assert_int_equal(msc_dataset_load(&first, &o, &spec_10x12, 1), MSC_OK);
    o.image.channels_last = true;
    assert_int_equal(msc_dataset_load(&second, &o, &last, 1), MSC_OK);
    assert_int_equal(msc_dataset_load(&raw, &o, &bytes, 1), MSC_OK);
    const struct msc_array *a = msc_dataset_batch(first, 1, 0);
    const struct msc_array *b = msc_dataset_batch(second, 1, 0);
    const struct msc_array *c = msc_dataset_batch(raw, 1, 0);
    for (int64_t i = 0; i < 120; i++) {
        for (int64_t k = 0; k < 3; k++) {
            double value = msc_array_get_double(a, k * 120 + i);
            assert_true(value == msc_array_get_double(b, i * 3 + k));
            double pixel = (value * o.image.std[k] + o.image.mean[k]) * 255;
            assert_true(fabs(pixel - msc_array_get_double(c, i * 3 + k)) < 1e-3);
        }
    }
    msc_dataset_destroy(first);
    msc_dataset_destroy(second);
    msc_dataset_destroy(raw);
}

static void test_data_image__own_sizes(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct msc_dataset_options o = folder_options(path);
    struct msc_input_spec open = spec_10x12;
    open.dims[2] = open.dims[3] = -1;
    struct msc_dataset *data = NULL;
    assert_int_equal(msc_dataset_load(&data, &o, &open, 1), MSC_OK);
    static const int64_t sizes[3][2] = {{20, 30}, {24, 16}, {9, 11}};
    for (size_t b = 0; b < 3; b++) {
        assert_int_equal(msc_array_dim(msc_dataset_batch(data, b, 0), 2), sizes[b][0]);
        assert_int_equal(msc_array_dim(msc_dataset_batch(data, b, 0), 3), sizes[b][1]);
    }
    msc_dataset_destroy(data);
    o.batch = 2;
    test_fails(msc_dataset_load(&data, &o, &open, 1), MSC_E_INVALID, "images", "\"batch\" to 1",
               "[1,3,20,30]", "[1,3,24,16]", NULL);
    // Only the last of the three images.
    o.take_last = 1;
    assert_int_equal(msc_dataset_load(&data, &o, &open, 1), MSC_OK);
    assert_int_equal(msc_dataset_n_samples(data), 1);
    assert_int_equal(msc_array_dim(msc_dataset_batch(data, 0, 0), 2), 9);
    msc_dataset_destroy(data);
}

static void test_data_image__options_that_do_not_fit(void **state) {
    (void)state;
    char path[PATH_BYTES];
    struct msc_dataset *data = NULL;
    struct msc_dataset_options o = folder_options(path);
    o.image.channels = 1;
    test_fails(msc_dataset_load(&data, &o, &spec_10x12, 1), MSC_E_INVALID, "\"x\"", "[-1,3,10,12]",
               "1 channels", NULL);
    o = folder_options(path);
    o.image.height = 11;
    test_fails(msc_dataset_load(&data, &o, &spec_10x12, 1), MSC_E_INVALID, "height 11", NULL);
    o = folder_options(path);
    o.image.channels_last = true;
    test_fails(msc_dataset_load(&data, &o, &spec_10x12, 1), MSC_E_INVALID, "channels last", NULL);
    o = folder_options(path);
    o.image.std[1] = 0.0;
    test_fails(msc_dataset_load(&data, &o, &spec_10x12, 1), MSC_E_INVALID, "std 0", NULL);
    o = folder_options(path);
    o.image.channels = 2;
    test_fails(msc_dataset_load(&data, &o, &spec_10x12, 1), MSC_E_INVALID, "1, 3 or 4", NULL);
    o = folder_options(path);
    struct msc_input_spec ids = {.name = "ids",
                                 .dtype = MSC_DTYPE_I64,
                                 .n_dims = 4,
                                 .dims = {-1, 3, 10, 12},
                                 .is_batched = true};
    test_fails(msc_dataset_load(&data, &o, &ids, 1), MSC_E_INVALID, "\"ids\" expects int64", NULL);
    struct msc_input_spec flat = {
        .name = "x", .dtype = MSC_DTYPE_F32, .n_dims = 2, .dims = {-1, 360}, .is_batched = true};
    test_fails(msc_dataset_load(&data, &o, &flat, 1), MSC_E_INVALID, "4 axes", NULL);
}

static void test_data_image__folders_without_images(void **state) {
    char path[PATH_BYTES], file[PATH_BYTES];
    snprintf(path, sizeof path, "%s/photos", (const char *)*state);
    assert_int_equal(mkdir(path, 0700), 0);
    struct msc_image_list list = {0};
    test_fails(msc_image__list(&list, path), MSC_E_INVALID, path, "no .png", NULL);
    snprintf(file, sizeof file, "%s/photos/a.webp", (const char *)*state);
    FILE *handle = fopen(file, "wb");
    assert_non_null(handle);
    fclose(handle);
    test_fails(msc_image__list(&list, path), MSC_E_UNSUPPORTED, "a.webp", "PNG", NULL);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(path), 0);
    test_fails(msc_image__list(&list, path), MSC_E_NOT_FOUND, path, NULL);
    assert_int_equal(list.n, 0);
}

static void test_data_image__truncated(void **state) {
    test_truncations(state, "images/a.png", "cut.png", decode);
    test_truncations(state, "images/b.jpg", "cut.jpg", decode);
    test_truncations(state, "images/c.BMP", "cut.bmp", decode);
}

// IDAT chunks may be empty (PNG, 11.2.4), even the first one.
static void test_data_image__empty_piece(void **state) {
    static const char empty[12] = {0, 0, 0, 0, 'I', 'D', 'A', 'T', 0x35, (char)0xaf, 0x06, 0x1e};
    char path[PATH_BYTES];
    char *bytes = NULL;
    size_t n_bytes = 0;
    struct msc_array *a = NULL, *expected = NULL;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, test_file(path, "images/a.png")), MSC_OK);
    size_t before = 0; // a chunk's length comes before its name
    while (before + 8 < n_bytes && memcmp(bytes + before + 4, "IDAT", 4) != 0) {
        before++;
    }
    assert_true(before + 8 < n_bytes);
    char *with = msc_alloc(n_bytes + sizeof empty);
    memcpy(with, bytes, before);
    memcpy(with + before, empty, sizeof empty);
    memcpy(with + before + sizeof empty, bytes + before, n_bytes - before);
    test_path(path, state, "empty.png");
    assert_int_equal(msc_file_write(path, with, n_bytes + sizeof empty), MSC_OK);
    assert_int_equal(msc_image__decode(&a, path, 3), MSC_OK);
    assert_int_equal(msc_npy_load(&expected, test_file(path, "images_a.npy")), MSC_OK);
    double largest, average;
    compare(&largest, &average, a, expected);
    assert_true(largest == 0.0);
    msc_array_release(a);
    msc_array_release(expected);
    msc_free(with);
    msc_free(bytes);
}

// The decoder would write a Huffman table of this size past the end of its own array.
static void test_data_image__huffman_table_too_large(void **state) {
    char path[PATH_BYTES];
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, test_file(path, "images/b.jpg")), MSC_OK);
    char *table = NULL;
    for (size_t i = 0; i + 21 < n_bytes && !table; i++) {
        table = memcmp(bytes + i, "\xff\xc4", 2) == 0 ? bytes + i : NULL;
    }
    assert_non_null(table);
    memset(table + 5, 0xff, 16);
    assert_int_equal(msc_file_write(test_path(path, state, "table.jpg"), bytes, n_bytes), MSC_OK);
    test_fails(decode(path), MSC_E_FORMAT, path, "byte ", "Huffman", NULL);
    msc_free(bytes);
}

// A JPEG has damaged tables, and its bits end within a code. It decodes to wrong pixels, but to the
// right number of them.
static void test_data_image__bits_end_within_code(void **state) {
    char path[PATH_BYTES];
    struct msc_array *a = NULL;
    (void)state;
    assert_int_equal(msc_image__decode(&a, test_file(path, "bits_end.jpg"), 3), MSC_OK);
    assert_int_equal(msc_array_n_elements(a), 16 * 24 * 3);
    msc_array_release(a);
}

// Writes a file of `n_bytes` that starts with `head` and is padded with zeros.
static const char *write_head(char path[PATH_BYTES], void **state, const char *name,
                              const char *head, size_t n_head, size_t n_bytes) {
    char *bytes = msc_alloc_zero(1, n_bytes);
    assert_non_null(bytes);
    memcpy(bytes, head, n_head);
    assert_int_equal(msc_file_write(test_path(path, state, name), bytes, n_bytes), MSC_OK);
    msc_free(bytes);
    return path;
}

// Headers of 60000 x 60000 pixels with 3 channels, and of 2^31 - 1 x 1 pixels with one.
#define HUGE_PNG "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0"
#define WIDE_PNG "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\x7f\xff\xff\xff\0\0\0\x01\x08\0\0\0\0"
// Sides of 2^32 - 1, four channels, 255 bits per sample.
#define VAST_PNG "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\xff\xff\xff\xff\xff\xff\xff\xff\xff\x06\0\0\0"
// Sides of 2^31 - 1 and -2^31, 65535 bits per pixel.
#define VAST_BMP                                                                                   \
    "BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\xff\xff\xff\x7f\0\0\0\x80\x01\0\xff\xff\0\0\0\0"
// 20000 x 6000 pixels in a file that could hold 20.
#define SHORT_PNG "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x4e\x20\0\0\x17\x70\x08\x02\0\0\0"
// 20000 x -6000 pixels of 24 bits each.
#define SHORT_BMP                                                                                  \
    "BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x20\x4e\0\0\x90\xe8\xff\xff\x01\0\x18\0\0\0\0\0"

// The message contains the dimensions from the header.
static void test_data_image__too_many_pixels(void **state) {
    char path[PATH_BYTES];
    test_fails(decode(write_head(path, state, "huge.png", HUGE_PNG, sizeof HUGE_PNG, 100)),
               MSC_E_UNSUPPORTED, "huge.png", "60000 x 60000 pixels", "smaller", NULL);
    test_fails(decode(write_head(path, state, "wide.png", WIDE_PNG, sizeof WIDE_PNG, 100)),
               MSC_E_UNSUPPORTED, "wide.png", "2147483647 x 1 pixels", NULL);
    test_fails(decode(write_head(path, state, "vast.png", VAST_PNG, sizeof VAST_PNG, 100)),
               MSC_E_UNSUPPORTED, "vast.png", "4294967295 x 4294967295 pixels", NULL);
    test_fails(decode(write_head(path, state, "vast.bmp", VAST_BMP, sizeof VAST_BMP, 100)),
               MSC_E_UNSUPPORTED, "vast.bmp", "2147483647 x 2147483648 pixels", NULL);
}

// If a file is too short for the pixels that its header promises, it is refused because of its
// length. This happens before hundreds of megabytes are allocated.
static void test_data_image__more_pixels_than_bytes(void **state) {
    char path[PATH_BYTES];
    test_fails(decode(write_head(path, state, "short.png", SHORT_PNG, sizeof SHORT_PNG, 1000)),
               MSC_E_FORMAT, "short.png", "byte 1000", "20000 x 6000 pixels", NULL);
    test_fails(decode(write_head(path, state, "short.bmp", SHORT_BMP, sizeof SHORT_BMP, 42)),
               MSC_E_FORMAT, "short.bmp", "byte 42", "20000 x 6000 pixels", "360000000", NULL);
    char *bytes = NULL;
    size_t n_bytes = 0;
    assert_int_equal(msc_file_read(&bytes, &n_bytes, test_file(path, "images/b.jpg")), MSC_OK);
    char *frame = NULL;
    for (size_t i = 0; i + 9 < n_bytes && !frame; i++) {
        frame = memcmp(bytes + i, "\xff\xc0", 2) == 0 ? bytes + i : NULL;
    }
    assert_non_null(frame);
    memcpy(frame + 5, "\x17\x70\x4e\x20", 4);
    assert_int_equal(msc_file_write(test_path(path, state, "short.jpg"), bytes, n_bytes), MSC_OK);
    msc_free(bytes);
    test_fails(decode(path), MSC_E_FORMAT, "short.jpg", "20000 x 6000 pixels", NULL);
}

static void test_data_image__unknown_kind(void **state) {
    char path[PATH_BYTES];
    test_fails(decode(write_head(path, state, "gif.png", "GIF89a", 6, 100)), MSC_E_FORMAT,
               "gif.png", "PNG, JPEG or BMP", NULL);
}

static void test_data_image__changed_bytes(void **state) {
    test_changed_bytes(state, "images/a.png", "changed.png", decode);
    test_changed_bytes(state, "images/b.jpg", "changed.jpg", decode);
    test_changed_bytes(state, "images/c.BMP", "changed.bmp", decode);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_data_image__decode),
        cmocka_unit_test(test_data_image__resize),
        cmocka_unit_test(test_data_image__folder),
        cmocka_unit_test(test_data_image__layouts),
        cmocka_unit_test(test_data_image__own_sizes),
        cmocka_unit_test(test_data_image__options_that_do_not_fit),
        cmocka_unit_test(test_data_image__folders_without_images),
        cmocka_unit_test(test_data_image__truncated),
        cmocka_unit_test(test_data_image__empty_piece),
        cmocka_unit_test(test_data_image__huffman_table_too_large),
        cmocka_unit_test(test_data_image__bits_end_within_code),
        cmocka_unit_test(test_data_image__too_many_pixels),
        cmocka_unit_test(test_data_image__more_pixels_than_bytes),
        cmocka_unit_test(test_data_image__unknown_kind),
        cmocka_unit_test(test_data_image__changed_bytes),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}
