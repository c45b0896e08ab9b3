// Tests the tiles of matrix products on the vulkan backend: the choice of tiles by rule or by
// tuning, the file that keeps tuned tiles, and the unit that multiplies bytes. Also tests downloads
// of several tensors. Skipped if there is no Vulkan device. Expected products are calculated on the
// host, with integers.
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "kernels/vulkan/vk_gemm.h"
#include "kernels/vulkan/vulkan.h"

#include "kernels/engine/backends.h"
#include "tests/kernels/vulkan_kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Opens a backend as family "u" or "g", with a value for MSC_VULKAN_DOT (NULL: unset) and one for
// MSC_VULKAN_MATRIX.
static struct msc_backend *open_with(const char *family, const char *dot, const char *matrix,
                                     const char *folder) {
    struct msc_backend_options o = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *b;
    o.cache_folder = folder;
    setenv("MSC_VULKAN_FAMILY", family, 1);
    setenv("MSC_VULKAN_MATRIX", matrix, 1);
    if (dot) {
        setenv("MSC_VULKAN_DOT", dot, 1);
    }
    enum msc_status status = msc_backend_open(&b, "vulkan", &o);
    unsetenv("MSC_VULKAN_FAMILY");
    unsetenv("MSC_VULKAN_DOT");
    unsetenv("MSC_VULKAN_MATRIX");
    assert_ok(status);
    return b;
}

static struct msc_backend *open_as(const char *family, const char *dot, const char *folder) {
    return open_with(family, dot, "0", folder);
}

static void close_checked(struct msc_backend *b) {
    assert_int_equal(msc_vulkan_n_messages(b), 0);
    msc_backend_close(b);
}

// A large product gets the fastest tile, which is smaller for bytes than for floats. A narrow
// product gets a tile without unused columns, and a product with few tiles gets small tiles. A tile
// that the device cannot run is never chosen.
static void test_kernels_vulkan_tiles__rule(void **state) {
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_as("g", NULL, NULL);
    struct msc_vk *vk = msc_vk_from(b)->vk;
    const struct msc_vk_shape square = {4096, 4096, 1024, false}, narrow = {100352, 32, 144, false};
    const struct msc_vk_shape small = {16, 16, 16, false}, bytes = {4096, 4096, 1024, true};
    const struct msc_vk_shape few = {392, 512, 4608, false};
    vk->tuning.tiles = MSC_VK_ALL_TILES;
    vk->tuning.slots = 256;
    const struct msc_vk_tile *t = msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &square));
    assert_int_equal(t->rows * t->cols, 64 * 64);
    t = msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &bytes));
    assert_int_equal(t->rows * t->cols, 32 * 64);
    t = msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &narrow));
    assert_int_equal(t->cols, 32);
    t = msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &small));
    assert_int_equal(t->rows * t->cols, 32 * 32);
    vk->tuning.slots = 132;
    t = msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &few));
    assert_int_equal(t->rows * t->cols, 32 * 64);
    uint32_t shared = vk->properties.limits.maxComputeSharedMemorySize;
    vk->properties.limits.maxComputeSharedMemorySize = 12000;
    t = msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &square));
    assert_true(4 * t->depth * (t->rows + 4 + t->cols) <= 12000);
    vk->properties.limits.maxComputeSharedMemorySize = shared;
    close_checked(b);
}

// A product whose rows and columns no tile divides: 2 of [ROWS, depth] by [depth, COLS].
enum { ROWS = 150, COLS = 139, COLS_ROUNDED = 140, DEPTH = 37, MOST_DEPTH = 80 };

struct product {
    struct msc_vk_backend *b;
    struct msc_vk_block *x, *w, *y, *tail;
    int depth;
    int8_t numbers_x[2 * ROWS * MOST_DEPTH];
    float expected[2 * ROWS * COLS], result[2 * ROWS * COLS];
};

// Integers, so that floats give the same results.
static void fill_product(struct product *p, enum msc_vk_unit unit) {
    static float floats[2 * ROWS * MOST_DEPTH], weights[MOST_DEPTH * COLS_ROUNDED], tail[3 * COLS];
    static int8_t bytes[MOST_DEPTH * COLS_ROUNDED];
    size_t n_x = (size_t)(2 * ROWS * p->depth);
    struct msc_rng rng;
    msc_rng_seed(&rng, 4, 0);
    for (size_t i = 0; i < n_x; i++) {
        p->numbers_x[i] = (int8_t)(msc_rng_u64(&rng) % 256);
        floats[i] = p->numbers_x[i];
    }
    memset(p->expected, 0, sizeof(p->expected));
    memset(weights, 0, sizeof(weights));
    memset(bytes, 0, sizeof(bytes));
    for (int k = 0; k < p->depth; k++) {
        for (int c = 0; c < COLS; c++) {
            int8_t w = (int8_t)(msc_rng_u64(&rng) % 256);
            weights[k * COLS_ROUNDED + c] = w;
            bytes[(k / 4 * COLS_ROUNDED + c) * 4 + k % 4] = w;
            for (int r = 0; r < 2 * ROWS; r++) {
                p->expected[r * COLS + c] += (float)(p->numbers_x[r * p->depth + k] * w);
            }
        }
    }
    struct msc_vk *vk = p->b->vk;
    bool is_int = unit == MSC_VK_UNIT_INT;
    assert_ok(unit == MSC_VK_UNIT_FLOATS ? msc_vk_upload_new(vk, &p->x, floats, n_x * sizeof(float))
                                         : msc_vk_upload_new(vk, &p->x, p->numbers_x, n_x));
    assert_ok(is_int ? msc_vk_upload_new(vk, &p->w, bytes, sizeof(bytes))
                     : msc_vk_upload_new(vk, &p->w, weights, sizeof(weights)));
    assert_ok(msc_vk_upload_new(vk, &p->tail, tail, sizeof(tail)));
    assert_ok(msc_vk_take(&p->y, p->b, 1, sizeof(p->result)));
}

static void check_tile(struct product *p, enum msc_vk_unit unit, int tile) {
    struct msc_vk_gemm_desc desc = {.n_z = 2,
                                    .n_rows = ROWS,
                                    .n_cols = COLS,
                                    .depth = p->depth,
                                    .x_row = p->depth,
                                    .y_row = COLS,
                                    .x_step = (int64_t)ROWS * p->depth,
                                    // With w_step 0 both products use the same w.
                                    .y_step = ROWS * COLS};
    struct msc_vk_gemm_call call = {
        .x = p->x, .w = p->w, .y = p->y, .tail = p->tail, .bytes = {true, 0, 0, -1, 1.0f}};
    struct msc_vk_copy copy = {p->result, p->y, sizeof(p->result)};
    struct msc_vk_gemm *gemm;
    p->b->vk->forced_tile = tile;
    memset(p->result, 0, sizeof(p->result));
    assert_ok(msc_vk_gemm_create(&gemm, p->b, &desc));
    assert_ok(msc_vk_gemm_run(gemm, p->b, unit, &call, 1));
    assert_ok(msc_vk_download(p->b->vk, &copy, 1));
    assert_memory_equal(p->result, p->expected, sizeof(p->expected));
    msc_vk_gemm_destroy(gemm, p->b);
    p->b->vk->forced_tile = -1;
}

// Every tile that the device can run gives the same result in every unit. With matrix units, checks
// only the tiles for them.
static void check_family(struct msc_backend *b, int depth) {
    static struct product p;
    p.b = msc_vk_from(b);
    p.depth = depth;
    msc_vk_lock(p.b->vk);
    for (int unit = 0; unit < MSC_VK_UNIT_COUNT; unit++) {
        if (p.b->vk->tuning.is_family_u && unit != MSC_VK_UNIT_FLOATS) {
            break;
        }
        fill_product(&p, (enum msc_vk_unit)unit);
        for (int tile = 0; tile < msc_vk_n_tiles(p.b->vk); tile++) {
            if (msc_vk_tile_is_possible(p.b->vk, tile, unit == MSC_VK_UNIT_INT) &&
                msc_vk_tile(p.b->vk, tile)->is_matrix == p.b->vk->has_matrix) {
                check_tile(&p, (enum msc_vk_unit)unit, tile);
            }
        }
        msc_vk_give((struct msc_vk_block *[]){p.x, p.w, p.y, p.tail}, p.b, 4);
    }
    msc_vk_unlock(p.b->vk);
}

static void test_kernels_vulkan_tiles__results(void **state) {
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_as("u", NULL, NULL);
    check_family(b, DEPTH);
    close_checked(b);
    b = open_as("g", "1", NULL);
    check_family(b, DEPTH);
    close_checked(b);
}

// Matrix units give the same results, whether 16 channels are read at a time (their number is a
// multiple of 16) or four. By rule, only products of bytes use them.
static void test_kernels_vulkan_tiles__matrices(void **state) {
    const struct msc_vk_shape bytes = {4096, 4096, 1024, true}, floats = {4096, 4096, 1024, false};
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_with("g", "0", "1", NULL);
    struct msc_vk *vk = msc_vk_from(b)->vk;
    if (!vk->has_matrix) {
        msc_backend_close(b);
        print_message("skipped: no matrix units\n");
        skip();
    }
    assert_true(msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &bytes))->is_matrix);
    assert_false(msc_vk_tile(vk, msc_vk_choose_by_rule(vk, &floats))->is_matrix);
    check_family(b, DEPTH);
    check_family(b, MOST_DEPTH);
    close_checked(b);
}

static void write_file(const char *path, const char *text) {
    assert_ok(msc_file_write(path, text, strlen(text)));
}

// Only the next backend with the same device, driver and family uses the tuned tiles. That backend
// uses the nearest tuned shape, if one is near enough.
static void test_kernels_vulkan_tiles__tuned(void **state) {
    char folder[] = "/tmp/msc_tiles_XXXXXX", path[300], *text;
    struct msc_vulkan_tuned rows[4];
    size_t n_bytes;
    int n;
    (void)state;
    skip_without_device();
    assert_non_null(mkdtemp(folder));
    struct msc_backend *b = open_as("u", NULL, folder);
    const VkPhysicalDeviceProperties *p = &msc_vk_from(b)->vk->properties;
    snprintf(path, sizeof(path), "%s/vulkan-%08x-%08x-u.choices.json", folder, p->vendorID,
             p->deviceID);
    assert_ok(msc_vulkan_tune(b, 0.0, rows, 4, &n));
    assert_int_equal(n, 1); // the first shape is tuned even without time
    assert_true(rows[0].gflops > 0.0 && rows[0].gflops >= rows[0].gflops_by_rule);
    close_checked(b);
    assert_true(msc_file_exists(path));

    b = open_as("u", NULL, folder);
    struct msc_vk *vk = msc_vk_from(b)->vk;
    assert_int_equal(vk->n_tuned, 1);
    const struct msc_vk_shape same = vk->tuned[0].shape;
    const struct msc_vk_shape near = {same.rows + 1, same.cols, same.depth * 2, false};
    const struct msc_vk_shape far = {same.rows * 100, same.cols / 8, same.depth, false};
    vk->tuned[0].tile = 3; // any tile, whichever was the fastest
    assert_int_equal(msc_vk_choose_tile(vk, &same), 3);
    assert_int_equal(msc_vk_choose_tile(vk, &near), 3);
    assert_int_equal(msc_vk_choose_tile(vk, &far), msc_vk_choose_by_rule(vk, &far));
    close_checked(b);

    b = open_as("g", NULL, folder);
    assert_int_equal(msc_vk_from(b)->vk->n_tuned, 0);
    close_checked(b);
    static const char *const places[] = {"\"schema\"", "\"device\"", "\"choices\"", "\"cols\"",
                                         "x"};
    assert_ok(msc_file_read(&text, &n_bytes, path));
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char *at = strstr(text, places[i]);
        assert_non_null(at);
        *(at[0] == '"' ? at + 1 : at) ^= 1;
        write_file(path, text);
        *(at[0] == '"' ? at + 1 : at) ^= 1;
        b = open_as("u", NULL, folder);
        assert_int_equal(msc_vk_from(b)->vk->n_tuned, 0);
        close_checked(b);
    }
    msc_free(text);
    snprintf(path, sizeof(path), "rm -r %s", folder);
    assert_int_equal(system(path), 0);
}

static void test_kernels_vulkan_tiles__needs_a_folder(void **state) {
    struct msc_vulkan_tuned rows[1];
    int n;
    (void)state;
    skip_without_device();
    assert_int_equal(msc_vulkan_tune(kept, 1.0, rows, 1, &n), MSC_E_INVALID);
}

// The dot-product instruction is used if it is fast or requested, and the extension exists.
static void test_kernels_vulkan_tiles__dot(void **state) {
    (void)state;
    skip_without_device();
    struct msc_backend *b = open_as("g", "0", NULL);
    assert_false(msc_vk_from(b)->vk->has_dot || msc_vk_from(b)->vk->prefers_int);
    close_checked(b);
    b = open_as("g", "emulate", NULL);
    assert_true(!msc_vk_from(b)->vk->has_dot && msc_vk_from(b)->vk->prefers_int);
    close_checked(b);
    b = open_as("g", "1", NULL);
    assert_int_equal(msc_vk_from(b)->vk->has_dot, msc_vk_from(b)->vk->prefers_int);
    close_checked(b);
}

// Several downloads at once, larger than the staging buffers.
static void check_downloads(struct msc_backend *b) {
    enum { N = 3 };
    static const size_t sizes[N] = {5, 40u << 20, 1000};
    void *blocks[N];
    void *hosts[N];
    for (int i = 0; i < N; i++) {
        blocks[i] = b->def->allocate(b, sizes[i]);
        hosts[i] = msc_alloc(sizes[i]);
        assert_true(blocks[i] && hosts[i]);
        memset(hosts[i], 17 + i, sizes[i]);
        assert_ok(b->def->upload(b, blocks[i], hosts[i], sizes[i]));
        memset(hosts[i], 0, sizes[i]);
    }
    assert_ok(b->def->download_all(b, hosts, (const void *const *)blocks, sizes, N));
    for (int i = 0; i < N; i++) {
        const uint8_t *bytes = hosts[i];
        for (size_t at = 0; at < sizes[i]; at += at + 7 < sizes[i] ? 7 : 1) {
            assert_int_equal(bytes[at], 17 + i);
        }
        b->def->release_memory(b, blocks[i], sizes[i]);
        msc_free(hosts[i]);
    }
}

static void test_kernels_vulkan_tiles__downloads(void **state) {
    (void)state;
    skip_without_device();
    check_downloads(kept);
    setenv("MSC_VULKAN_STAGE", "1", 1); // as if the host could not see the device's memory
    struct msc_backend *b = open_as("g", NULL, NULL);
    unsetenv("MSC_VULKAN_STAGE");
    check_downloads(b);
    check_downloads(b);
    close_checked(b);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_vulkan_tiles__rule),
        cmocka_unit_test(test_kernels_vulkan_tiles__results),
        cmocka_unit_test(test_kernels_vulkan_tiles__matrices),
        cmocka_unit_test(test_kernels_vulkan_tiles__tuned),
        cmocka_unit_test(test_kernels_vulkan_tiles__needs_a_folder),
        cmocka_unit_test(test_kernels_vulkan_tiles__dot),
        cmocka_unit_test(test_kernels_vulkan_tiles__downloads),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, open_kept, NULL);
}
