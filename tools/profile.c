#include "tools/profile.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

// After subtracting the overhead of timing, at least this share of a kernel's time remains.
#define LEAST_PART 0.1

// ---- Names ------------------------------------------------------------------------------------

// The owner of a name: a joint or a tensor, or neither.
struct owner {
    int32_t joint, tensor;
};

static bool is_between_words(char c) {
    return c == '\0' || c == '_' || c == '.' || c == ':' || c == '/' || c == '-';
}

// Finds the longest prefix of `text` that the graph knows; `text` is modified. Tensors take
// precedence, since a tensor and a joint may share a name.
static struct owner find_owner(const struct msc_graph *g, char *text) {
    struct owner owner = {MSC_NO_ID, MSC_NO_ID};
    for (size_t n = strlen(text); n > 0; n--) {
        if (!is_between_words(text[n])) {
            continue;
        }
        text[n] = '\0';
        owner.tensor = msc_graph_find_tensor(g, text);
        owner.joint = owner.tensor == MSC_NO_ID ? msc_graph_find_joint(g, text) : MSC_NO_ID;
        if (owner.tensor != MSC_NO_ID || owner.joint != MSC_NO_ID) {
            break;
        }
    }
    return owner;
}

static enum msc_status find_kernel_owner(struct owner *out, const struct msc_graph *g,
                                         const struct msc_profile_kernel *kernel,
                                         struct msc_arena *arena) {
    *out = (struct owner){MSC_NO_ID, MSC_NO_ID};
    for (size_t i = 0; i < kernel->n_names && out->joint == MSC_NO_ID && out->tensor == MSC_NO_ID;
         i++) {
        char *copy = msc_arena_strdup(arena, kernel->names[i]);
        MSC_TRY(MSC_ALLOCATED(copy));
        *out = find_owner(g, copy);
    }
    return MSC_OK;
}

static bool is_constant(const struct msc_graph *g, int32_t tensor) {
    return msc_graph_weight_of(g, tensor) != MSC_NO_ID;
}

// The joint that produces a tensor; for a constant, the first joint that reads it.
static int32_t joint_of_tensor(const struct msc_graph *g, int32_t tensor) {
    const int32_t *readers;
    if (!is_constant(g, tensor)) {
        return msc_graph_producer(g, tensor);
    }
    return msc_graph_consumers(g, tensor, &readers) > 0 ? readers[0] : MSC_NO_ID;
}

// ---- Times ------------------------------------------------------------------------------------

static double sum_of(const struct msc_profile *p) {
    double sum = 0;
    for (size_t i = 0; i < p->n_kernels; i++) {
        sum += p->kernels[i].us;
    }
    return sum;
}

// The overhead that timing adds to a kernel.
static double excess_of(const struct msc_profile *p, double us) {
    return p->n_kernels > 0 ? (sum_of(p) - us) / (double)p->n_kernels : 0;
}

static double without(double us, double excess) {
    return us - excess > LEAST_PART * us ? us - excess : LEAST_PART * us;
}

static double *place_of(struct msc_profile_times *times, const struct msc_graph *g,
                        const struct owner *owner, enum msc_profile_kind kind) {
    int32_t tensor = owner->tensor;
    int32_t joint = owner->joint;
    if (kind != MSC_PROFILE_COMPUTE && tensor == MSC_NO_ID && joint != MSC_NO_ID) {
        const struct msc_joint *j = msc_graph_joint(g, joint);
        tensor = j->n_outputs > 0 ? j->outputs[0] : MSC_NO_ID;
    }
    if (kind != MSC_PROFILE_COMPUTE && tensor != MSC_NO_ID && !is_constant(g, tensor)) {
        return kind == MSC_PROFILE_QUANTIZE ? &times->quantize_us[tensor]
                                            : &times->dequantize_us[tensor];
    }
    joint = tensor != MSC_NO_ID ? joint_of_tensor(g, tensor) : joint;
    return joint == MSC_NO_ID ? &times->other_us : &times->compute_us[joint];
}

enum msc_status msc_profile_attribute(struct msc_profile_times *out, const struct msc_graph *g,
                                      const struct msc_profile *profile, struct msc_arena *arena) {
    size_t n_tensors = (size_t)msc_graph_n_tensors(g) + 1;
    // An untimed run cannot take longer than the timed kernels together, unless it was disturbed.
    double us = fmin(profile->us, sum_of(profile));
    double excess = excess_of(profile, us);
    double sum = 0;
    *out = (struct msc_profile_times){.us = us};
    out->compute_us = msc_arena_array(arena, (size_t)msc_graph_n_joints(g) + 1, sizeof(double));
    out->quantize_us = msc_arena_array(arena, n_tensors, sizeof(double));
    out->dequantize_us = msc_arena_array(arena, n_tensors, sizeof(double));
    MSC_TRY(MSC_ALLOCATED(out->compute_us && out->quantize_us && out->dequantize_us));
    for (size_t i = 0; i < profile->n_kernels; i++) {
        sum += without(profile->kernels[i].us, excess);
    }
    for (size_t i = 0; i < profile->n_kernels; i++) {
        const struct msc_profile_kernel *kernel = &profile->kernels[i];
        struct owner owner;
        MSC_TRY(find_kernel_owner(&owner, g, kernel, arena));
        *place_of(out, g, &owner, kernel->kind) += without(kernel->us, excess) * us / sum;
    }
    return MSC_OK;
}
