// Compares tensors with references on the device, so that the host reads back one number per
// sample.
#include "kernels/vulkan/vk_kernels.h"

#include "base/alloc.h"
#include "base/maths.h"
#include "base/rng.h"

#include <string.h>

struct push {
    uint32_t n_samples, n;
};

static uint64_t lanes_turns(int64_t n) {
    return ((uint64_t)n + MSC_MATHS_LANES - 1) / MSC_MATHS_LANES;
}

static bool have_same_form(const struct msc_comparison *a, const struct msc_comparison *b) {
    return a->n_samples == b->n_samples && a->n == b->n;
}

// Converts the tensors that are stored as integers to floats. floats[i] is NULL for other tensors.
// The caller frees `floats` (msc_vk_give), also on failure.
static enum msc_status make_floats(struct msc_vk_block *floats[], struct msc_vk_backend *b,
                                   const struct msc_comparison items[], int n) {
    struct msc_vk_expanding list[MSC_VK_MAX_CALLS];
    uint64_t n_elements = (uint64_t)(items[0].n_samples * items[0].n);
    int n_list = 0;
    memset(floats, 0, (size_t)n * sizeof(floats[0]));
    for (int i = 0; i < n; i++) {
        const struct msc_view *z = &items[i].z;
        if (z->quant) {
            MSC_TRY(msc_vk_take(&floats[i], b, 1, n_elements * sizeof(float)));
            list[n_list++] =
                (struct msc_vk_expanding){msc_vk_block_of(z), floats[i], msc_vk_bytes_value(z)};
        }
    }
    return n_list > 0 ? msc_vk_expand(b, list, n_list, n_elements) : MSC_OK;
}

static enum msc_status run_squares(struct msc_vk_backend *b, const struct msc_comparison items[],
                                   struct msc_vk_block *const floats[], int n,
                                   const struct msc_vk_block *sums, uint32_t first) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_READ, MSC_VK_WRITE};
    const uint32_t constants[] = {b->vk->tuning.lanes};
    const struct push push = {(uint32_t)items[0].n_samples, (uint32_t)items[0].n};
    struct msc_vk_pipeline *pipeline;
    struct msc_vk_dispatch d;
    MSC_VK_CHECK_CONSTANTS(MSC_VK_SQUARES, constants);
    MSC_TRY(msc_vk_pipeline(&pipeline, b->vk, MSC_VK_SQUARES, constants));
    msc_vk_dispatch_init(&d, pipeline, 3, kinds);
    for (int i = 0; i < n; i++) {
        struct msc_vk_call *c = msc_vk_add_call(&d);
        c->blocks[0] = items[i].y;
        c->blocks[1] = floats[i] ? floats[i] : msc_vk_block_of(&items[i].z);
        c->blocks[2] = sums;
        c->row[0] = first + (uint32_t)i * push.n_samples;
    }
    d.n_row = 1;
    d.groups[0] = msc_vk_groups(push.n_samples, b->vk->tuning.lanes / MSC_MATHS_LANES);
    d.work = msc_vk_turns_work((double)push.n_samples * (double)push.n);
    MSC_VK_CHECK_PUSH(MSC_VK_SQUARES, push);
    d.push = &push;
    d.push_bytes = sizeof(push);
    return msc_vk_dispatch(b->vk, &d);
}

// Records the comparisons of n items of one form. Their sums begin at number `first` of `sums`.
static enum msc_status compare_form(struct msc_vk_backend *b, const struct msc_comparison items[],
                                    int n, const struct msc_vk_block *sums, uint32_t first) {
    struct msc_vk_block *floats[MSC_VK_MAX_CALLS];
    enum msc_status status = make_floats(floats, b, items, n);
    if (status == MSC_OK) {
        status = run_squares(b, items, floats, n, sums, first);
    }
    msc_vk_give(floats, b, n);
    return status;
}

// Records all comparisons: a dispatch for each run of items of one form.
static enum msc_status compare_forms(struct msc_vk_backend *b, const struct msc_comparison items[],
                                     size_t n, const struct msc_vk_block *sums) {
    uint32_t first = 0;
    size_t n_same;
    for (size_t i = 0; i < n; i += n_same) {
        for (n_same = 1; i + n_same < n && n_same < MSC_VK_MAX_CALLS &&
                         have_same_form(&items[i], &items[i + n_same]);) {
            n_same++;
        }
        MSC_TRY(compare_form(b, &items[i], (int)n_same, sums, first));
        first += (uint32_t)n_same * (uint32_t)items[i].n_samples;
    }
    return MSC_OK;
}

enum msc_status msc_vk_compare(struct msc_vk_backend *b, const struct msc_comparison items[],
                               size_t n) {
    struct msc_vk_block *sums = NULL;
    double *host = NULL, *next;
    size_t n_bytes = 0;
    enum msc_status status;
    for (size_t i = 0; i < n; i++) {
        n_bytes += (size_t)items[i].n_samples * sizeof(host[0]);
    }
    MSC_TRY_OUT(msc_vk_take(&sums, b, 1, n_bytes));
    next = host = msc_alloc(n_bytes + 1);
    MSC_TRY_OUT(MSC_ALLOCATED(host));
    MSC_TRY_OUT(compare_forms(b, items, n, sums));
    const struct msc_vk_copy copy = {host, sums, n_bytes};
    MSC_TRY_OUT(msc_vk_download(b->vk, &copy, 1));
    for (size_t i = 0; i < n; i++) {
        memcpy(items[i].squares, next, (size_t)items[i].n_samples * sizeof(host[0]));
        next += items[i].n_samples;
    }
out:
    msc_vk_free(b->vk, sums);
    msc_free(host);
    return status;
}

// ---- Whether the device can compare -------------------------------------------------------------

// Vulkan does not require that operations of doubles are rounded correctly. So the first use
// compares the device's sums with the host's.
enum { TEST_SAMPLES = 24, TEST_ELEMENTS = 1003 };
#define TEST_BYTES (TEST_SAMPLES * TEST_ELEMENTS * sizeof(float))

// Fills samples with floats of full mantissas. The exponents of a sample span 16 powers of two; the
// first sample holds denormals.
static void fill_test(float x[], uint64_t seed) {
    struct msc_rng rng;
    msc_rng_seed(&rng, seed, 1);
    for (uint32_t i = 0; i < TEST_SAMPLES * TEST_ELEMENTS; i++) {
        uint64_t bits = msc_rng_u64(&rng);
        uint32_t sample = i / TEST_ELEMENTS;
        uint32_t exponent = sample == 0 ? 0 : sample * 10 + (uint32_t)(bits >> 32) % 16 - 9;
        uint32_t word = (uint32_t)(bits & 0x807fffffu) | exponent << 23;
        memcpy(&x[i], &word, sizeof(x[i]));
    }
}

static enum msc_status run_test(bool *is_exact, struct msc_vk_backend *b, float *host,
                                struct msc_vk_block *blocks[2]) {
    double sums[TEST_SAMPLES], expected[TEST_SAMPLES];
    float *y = host, *z = host + TEST_SAMPLES * TEST_ELEMENTS;
    fill_test(y, 1);
    fill_test(z, 2);
    MSC_TRY(msc_vk_upload_new(b->vk, &blocks[0], y, TEST_BYTES));
    MSC_TRY(msc_vk_upload_new(b->vk, &blocks[1], z, TEST_BYTES));
    const struct msc_comparison item = {.y = blocks[0],
                                        .z = {.data = blocks[1],
                                              .dtype = MSC_DTYPE_F32,
                                              .n_dims = 2,
                                              .dims = {TEST_SAMPLES, TEST_ELEMENTS}},
                                        .n_samples = TEST_SAMPLES,
                                        .n = TEST_ELEMENTS,
                                        .squares = sums};
    MSC_TRY(msc_vk_compare(b, &item, 1));
    for (size_t s = 0; s < TEST_SAMPLES; s++) {
        expected[s] = msc_squares_sum(y + s * TEST_ELEMENTS, z + s * TEST_ELEMENTS, TEST_ELEMENTS);
    }
    *is_exact = memcmp(sums, expected, sizeof(sums)) == 0;
    return MSC_OK;
}

// If the test cannot be made, it is repeated at the next use.
static void test_squares(struct msc_vk_backend *b) {
    struct msc_vk_block *blocks[2] = {NULL};
    float *host = msc_alloc(2 * TEST_BYTES);
    bool is_exact = false;
    if (host && run_test(&is_exact, b, host, blocks) == MSC_OK) {
        b->squares = is_exact ? MSC_VK_SQUARES_EXACT : MSC_VK_SQUARES_INEXACT;
        msc_log(b->vk->log, MSC_LOG_DEBUG, "vulkan: %s compares outputs %s",
                b->vk->properties.deviceName,
                is_exact ? "itself" : "inexactly, so the host compares them");
    }
    msc_vk_give(blocks, b, 2);
    msc_free(host);
}

static bool is_readable(const struct msc_view *z) {
    return z->quant ? !msc_quant_is_by_channel(z->quant) : z->dtype == MSC_DTYPE_F32;
}

bool msc_vk_compares(struct msc_vk_backend *b, const struct msc_view *z, int64_t n) {
    // If the host can read the device's memory, it compares without a copy.
    bool may = b->vk->has_float64 && !b->nothing->arena->mapped && is_readable(z) && n > 0 &&
               n <= INT32_MAX && msc_vk_can_turn(b->vk, lanes_turns(n));
    if (may && b->squares == MSC_VK_SQUARES_UNKNOWN) {
        test_squares(b);
    }
    return may && b->squares == MSC_VK_SQUARES_EXACT;
}
