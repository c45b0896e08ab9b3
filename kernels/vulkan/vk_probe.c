// Tests whether the device rounds quotients and square roots correctly. Vulkan allows errors of 2.5
// units in the last place and more; quantised values would then differ from the values of other
// backends. If the device does not round correctly, shaders correct quotients and roots. Also tests
// whether denormals are kept, which Vulkan does not require.
#include "kernels/vulkan/vk.h"

#include "base/alloc.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

#define N_PAIRS 16384
#define LANES 64
#define PER_LANE 64
#define N_RESULTS 5            // per pair
#define DENORMAL (N_PAIRS - 1) // index of the pair that only tests whether denormals are kept

// Fills pairs of a numerator of any magnitude and a denominator in the range of scales (2^-20 …
// 2^12), both with full mantissas.
static void vk_probe_fill(float pairs[]) {
    struct msc_rng rng;
    msc_rng_seed(&rng, 20240607, 1);
    for (int i = 0; i < N_PAIRS; i++) {
        uint64_t bits = msc_rng_u64(&rng);
        uint32_t a = (uint32_t)(bits & 0x807fffffu) | (uint32_t)(107 + (bits >> 32) % 32) << 23;
        uint32_t b = (uint32_t)(bits >> 40 & 0x7fffffu) | (uint32_t)(107 + (bits >> 50) % 32) << 23;
        memcpy(&pairs[2 * i], &a, sizeof(a));
        memcpy(&pairs[2 * i + 1], &b, sizeof(b));
    }
    pairs[2 * DENORMAL] = 1e-40f;
    pairs[2 * DENORMAL + 1] = 1.0f;
}

// Computes quotients and roots on the device, and counts those that differ from the results of C.
static enum msc_status count_wrong(struct msc_vk *vk, int *n_wrong, const struct msc_vk_block *in,
                                   const struct msc_vk_block *out, const float pairs[],
                                   float results[], bool repairs) {
    static const enum msc_vk_kind kinds[] = {MSC_VK_READ, MSC_VK_WRITE};
    uint32_t constants[] = {LANES, repairs ? 1 : 0};
    uint32_t push[2] = {N_PAIRS, PER_LANE};
    struct msc_vk_pipeline *pipeline;
    MSC_VK_CHECK_CONSTANTS(MSC_VK_PROBE, constants);
    MSC_TRY(msc_vk_pipeline(&pipeline, vk, MSC_VK_PROBE, constants));
    struct msc_vk_dispatch d;
    msc_vk_dispatch_init(&d, pipeline, 2, kinds);
    struct msc_vk_call *c = msc_vk_add_call(&d);
    c->blocks[0] = in;
    c->blocks[1] = out;
    MSC_VK_CHECK_PUSH(MSC_VK_PROBE, push);
    d.push = push;
    d.push_bytes = sizeof(push);
    d.groups[0] = msc_vk_groups(N_PAIRS, LANES * PER_LANE);
    MSC_TRY(msc_vk_dispatch(vk, &d));
    struct msc_vk_copy copy = {results, out, N_RESULTS * N_PAIRS * sizeof(float)};
    MSC_TRY(msc_vk_download(vk, &copy, 1));
    *n_wrong = 0;
    for (int i = 0; i < DENORMAL; i++) {
        const float expected[2] = {pairs[2 * i] / pairs[2 * i + 1], sqrtf(fabsf(pairs[2 * i]))};
        *n_wrong += memcmp(expected, &results[N_RESULTS * i], sizeof(expected)) != 0;
    }
    return MSC_OK;
}

// True if the results are exact for this denormal: divided by 1, clamped to 0 … 1, times 0.5, times
// 1.5.
static bool is_kept(const float results[N_RESULTS], float denormal) {
    return results[0] == denormal && results[2] == denormal && results[3] == 0.5f * denormal &&
           results[4] == 1.5f * denormal;
}

enum msc_status msc_vk_probe(struct msc_vk *vk) {
    enum msc_status status;
    int n_wrong;
    struct msc_vk_block *in = NULL, *out = NULL;
    float *pairs = msc_alloc((2 + N_RESULTS) * N_PAIRS * sizeof(float));
    MSC_TRY(MSC_ALLOCATED(pairs));
    vk_probe_fill(pairs);
    MSC_TRY_OUT(msc_vk_upload_new(vk, &in, pairs, 2 * N_PAIRS * sizeof(float)));
    MSC_TRY_OUT(msc_vk_upload_new(vk, &out, pairs, N_RESULTS * N_PAIRS * sizeof(float)));
    float *results = pairs + (size_t)2 * N_PAIRS;
    MSC_TRY_OUT(count_wrong(vk, &n_wrong, in, out, pairs, results, false));
    vk->divides_exactly = n_wrong == 0;
    vk->keeps_denormals = is_kept(&results[N_RESULTS * DENORMAL], pairs[2 * DENORMAL]);
    if (!vk->divides_exactly) {
        MSC_TRY_OUT(count_wrong(vk, &n_wrong, in, out, pairs, results, true));
        if (n_wrong > 0) {
            msc_log(
                vk->log, MSC_LOG_WARNING,
                "vulkan: %s rounds quotients or roots inexactly: results may differ from the cpu's",
                vk->properties.deviceName);
        }
    }
out:
    msc_vk_free(vk, in);
    msc_vk_free(vk, out);
    msc_free(pairs);
    return status;
}
