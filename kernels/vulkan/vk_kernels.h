// The kernels of the vulkan backend: what its files share.
//
// Planning is the cpu backend's: steps and layouts are the same, so that any step can run on either.
// A step whose family accepts it runs on the device; every other one runs on the host, on an inner
// cpu backend, between a download and an upload.
//
// To add a family: 1 write kernels/vulkan/vk_<name>.c ending in its `const struct msc_vk_family`,
// 2 declare it below, 3 name it in the table of vk_backend.c, 4 add the file to
// kernels/vulkan/CMakeLists.txt and a case to tests/kernels/test_vulkan_kernels.c.
#ifndef MSC_KERNELS_VULKAN_VK_KERNELS_H
#define MSC_KERNELS_VULKAN_VK_KERNELS_H

#include "kernels/cpu/ewise.h"
#include "kernels/vulkan/vk.h"

#ifdef __cplusplus
extern "C" {
#endif

// Raised whenever a kernel of ours changes a bit of some result.
#define MSC_VK_KERNELS_VERSION 1

struct msc_vk_backend {
    struct msc_backend base;
    struct msc_vk *vk;
    struct msc_backend *host;     // the cpu backend of steps without a shader
    struct msc_vk_block *nothing; // bound where a shader has a buffer that is not used
    char numerics[768];
};

static inline struct msc_vk_backend *msc_vk_from(const struct msc_backend *b) {
    return (struct msc_vk_backend *)b;
}

// All functions are called with the device's lock held.
struct msc_vk_family {
    const char *name;
    // MSC_E_UNSUPPORTED: not for shaders, run it on the host.
    enum msc_status (*prepare)(void **kernel, struct msc_vk_backend *b, const struct msc_plan *plan,
                               const struct msc_step *step);
    void (*release)(void *kernel, struct msc_vk_backend *b);
    enum msc_status (*run)(void *kernel, struct msc_vk_backend *b, const struct msc_call *call);
    // Optional.
    enum msc_status (*weights)(void *kernel, struct msc_vk_backend *b, const struct msc_quant *edit,
                               void **out, size_t *n_bytes);
    void (*release_weights)(void *weights, struct msc_vk_backend *b);
};

extern const struct msc_vk_family msc_vk_conv;
extern const struct msc_vk_family msc_vk_linear;
extern const struct msc_vk_family msc_vk_matmul;
extern const struct msc_vk_family msc_vk_ewise;
extern const struct msc_vk_family msc_vk_permute; // and reorders between layouts
extern const struct msc_vk_family msc_vk_concat;
extern const struct msc_vk_family msc_vk_split;
extern const struct msc_vk_family msc_vk_slice;
extern const struct msc_vk_family msc_vk_pad;
extern const struct msc_vk_family msc_vk_pool;
extern const struct msc_vk_family msc_vk_reduce; // and global pools
extern const struct msc_vk_family msc_vk_softmax;
extern const struct msc_vk_family msc_vk_resize;

static inline struct msc_vk_block *msc_vk_block_of(const struct msc_view *v) {
    return (struct msc_vk_block *)v->data;
}

// Temporary memory: may be freed as soon as its last use is recorded. MSC_E_NOMEM when short.
enum msc_status msc_vk_take(struct msc_vk_block **out, struct msc_vk_backend *b, uint64_t n_bytes);

// Workgroups of a kernel over n elements, and how many of them a lane takes.
uint32_t msc_vk_spread(const struct msc_vk *vk, uint64_t n, uint32_t *per_lane);

// ---- vk_quantize.c ----------------------------------------------------------------------------

enum msc_status msc_vk_quantize(struct msc_vk_backend *b, const struct msc_view *in,
                                const struct msc_view *out, const struct msc_quant *q);
// Floats of the stored integers: of one digit ((q - z) >> shift & mask), or dequantised.
enum msc_status msc_vk_expand(struct msc_vk_backend *b, const struct msc_view *in,
                              const struct msc_vk_block *out, int shift, int32_t mask);
enum msc_status msc_vk_dequantize(struct msc_vk_backend *b, const struct msc_view *in,
                                  const struct msc_vk_block *out);
// sums += product * 2^shift; the first time they are set.
enum msc_status msc_vk_add_digit(struct msc_vk_backend *b, const struct msc_vk_block *product,
                                 const struct msc_vk_block *sums, uint64_t n, int shift,
                                 bool is_first);
// What finishes whole-number sums; `tail` has scales and biases [2][channels], or is NULL where
// `scale` alone is the factor.
struct msc_vk_finish {
    const struct msc_vk_block *tail;
    uint32_t channels;
    float scale;
    bool has_bias;
};
enum msc_status msc_vk_finish_sums(struct msc_vk_backend *b, const struct msc_vk_block *out,
                                   const struct msc_vk_block *sums, uint64_t n,
                                   const struct msc_vk_finish *f);

// ---- vk_ewise.c -------------------------------------------------------------------------------

struct msc_vk_program;

// *out is NULL when there is nothing to do. MSC_E_UNSUPPORTED: too long, or an instruction without
// a shader.
enum msc_status msc_vk_program_create(struct msc_vk_program **out, struct msc_vk_backend *b,
                                      const struct msc_plan *plan, const struct msc_step *step,
                                      const struct msc_ewise_options *options);
void msc_vk_program_destroy(struct msc_vk_program *p, struct msc_vk_backend *b); // accepts NULL
enum msc_status msc_vk_program_run(const struct msc_vk_program *p, struct msc_vk_backend *b,
                                   const struct msc_call *call); // accepts NULL

#ifdef __cplusplus
}
#endif

#endif
