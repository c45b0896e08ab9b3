// The backend interface. A backend computes the steps of a plan; there are two, `cpu` (oneDNN and C
// kernels of our own) and `vulkan`.
//
// A backend is one `const struct msc_backend_def`. The planner asks the backend how to group joints
// and which layouts to use, and lets it prepare each step once. The evaluator makes weight
// variants, allocates buffers and runs steps. Results depend only on a step, its inputs and its
// weight variant, never on threads, on the other runs of a call, or on earlier calls.
//
// A joint computes in integer arithmetic if its input and its weight are quantised to integers (the
// input with one scale and zero point, the weight with at most one per output channel c) and every
// sum fits int32 and can be assembled from exact float32 sums: W = max over c of sum |q_w - z_w| is
// below 2^23, and B = W * max |q_x - z_x| is below 2^31. Here q, z and s are the integers, zero
// points and scales of the input (x) and the weight (w). The output y then follows from the integer
// `sum`; each assignment is rounded once to float32:
//
//     t = s_x * s_w[c]    y = t * (float)sum    y += b[c]
//
// If each output channel sums a single input channel, as in depthwise convolutions, the input may
// also have a scale and a zero point per channel; s_x is then the scale of the channel, and the sum
// of each channel must be below 2^24. In every other case the input is dequantised to float32.
//
// An input or a weight is quantised by a trial's edit, or by the model itself (msc_step.quant and
// msc_step.own_edits).
//
// A bias may be rounded (graph/edit.h) to a step that equals t for every c, compared bit by bit. If
// the input then has one scale and B + max |q_b| is below 2^31, the bias is added to the sum:
//
//     y = t * (float)(sum + q_b[c])
//
// With any other rounding the bias is added as float32, b = (float)q_b * step. So the bits of the
// output depend on neither the instructions used nor the backend.
#ifndef MSC_KERNELS_BACKEND_H
#define MSC_KERNELS_BACKEND_H

#include "base/log.h"
#include "graph/edit.h"
#include "kernels/plan.h"

MSC_PUBLIC_BEGIN

struct msc_reference_limits;
struct msc_backend; // begins with `const struct msc_backend_def *def`

struct msc_backend_options {
    int device;               // index among the backend's devices
    int n_threads;            // threads that call `run`, numbered 0 … n_threads - 1; at least 1
    int kernel_threads;       // threads inside one kernel; 1 whenever results are recorded
    bool allow_int8;          // use integer instructions if there are any
    const char *cache_folder; // for compiled kernels; may be NULL
    const struct msc_log *log;
    // Runs the steps that the backend has no kernel for; NULL if it has a kernel for every step.
    const struct msc_backend_def *fallback;
};

#define MSC_BACKEND_OPTIONS_INIT                                                                   \
    { .n_threads = 1, .kernel_threads = 1, .allow_int8 = true }

// A quantised variant of a step's output. The step quantises its float32 results before it stores
// them, with the same result as `quantize`.
struct msc_quantized {
    struct msc_view view;          // view.quant is NULL for fake-quantised float32
    const struct msc_quant *quant; // never NULL
};

// One run of a prepared step. Each view describes its own format: an input that is float32 in the
// plan may be given as integers, with one scale or one per channel (view.quant). Unless the step
// computes in integer arithmetic (see above), it gives the same bits as for the dequantised values
// (float)(q - z) * s. The caller allocates the outputs with the dims and layouts of the plan's
// values.
struct msc_call {
    const struct msc_view *inputs;  // [step.n_inputs]
    const struct msc_view *outputs; // [step.n_outputs]
    const void *weights;            // variant made by `weights`; NULL when the step has none
    // Only for steps that `quantizes` accepts: quantised variants of output 0. If there are any,
    // the data of output 0 may be NULL; then only the variants are written.
    const struct msc_quantized *quantized; // [n_quantized]
    int32_t n_quantized;
    const struct msc_reference_limits *limits; // for joints that run subgraphs; NULL: no limits
};

// The layouts in which a step reads and writes its values.
struct msc_step_layouts {
    enum msc_layout inputs[MSC_MAX_DIMS * 8]; // [step.n_inputs], at most 64
    enum msc_layout outputs;
    bool is_alias; // output 0 shares the bytes of input 0
};
#define MSC_STEP_MAX_INPUTS 64

// The device and the kernel that compute a step.
struct msc_placement {
    const char *device; // "cpu", "vulkan"
    const char *kernel; // the family of kernels: "convolution", "reference"
};

// What a step computes, as far as the choice among its variants depends on it: steps of equal work
// have the same variants and get the same choice.
struct msc_work {
    char kind[32];              // "int8 3x3", "float32"
    uint64_t rows, cols, depth; // results are [rows][cols], each a sum of `depth` products
};

// The variants of a step: ways to compute it that give the same bits on this device.
enum { MSC_MOST_VARIANTS = 16, MSC_VARIANT_BYTES = 40 };
struct msc_variants {
    struct msc_work work;
    int n;
    char names[MSC_MOST_VARIANTS][MSC_VARIANT_BYTES];
    int by_rule; // what is taken if no choice is kept for similar work
    int kept;    // the choice kept for this work or for similar work; -1: none
};

// A choice to keep for later runs on this device.
struct msc_kept_choice {
    struct msc_work work;
    char variant[MSC_VARIANT_BYTES];
};

// Memory of a backend that does not set memory_is_host.
struct msc_backend_memory {
    bool is_host;           // it is physically host memory: integrated GPUs, software drivers
    uint64_t used_bytes;    // allocated and packed memory, and the backend's own buffers
    uint64_t besides_bytes; // peak of temporary memory of one run, not part of used_bytes
    uint64_t room_bytes;    // roughly what could still be allocated; UINT64_MAX: not known
    uint64_t touched_bytes; // bytes of held memory that were used at least once: they are resident
};

// A tensor to compare with a reference, sample by sample.
struct msc_comparison {
    const void *y;     // the reference, float32 [n_samples][n], in the backend's memory
    struct msc_view z; // the tensor, with as many elements: float32, or integers (view.quant)
    int64_t n_samples, n;
    double *squares; // [n_samples] result, in host memory: the sum of (y - z)^2 of each sample
};

// What the host and the device of a backend have exchanged since the backend was opened. Bytes are
// those of tensors and packed weights, even if the host reads and writes the device's memory.
struct msc_backend_transfers {
    uint64_t to_device_bytes, to_host_bytes;
    uint64_t n_submissions; // batches of commands that were given to the device
    uint64_t n_waits;       // times that a thread waited for the device
};

struct msc_backend_def {
    const char *name;
    enum msc_status (*open)(struct msc_backend **out, const struct msc_backend_options *options);
    void (*close)(struct msc_backend *b);
    // One line that names everything that can change a bit of a result: "cpu/1 onednn-2.6.3 ...".
    const char *(*numerics)(const struct msc_backend *b);

    // For planning: true if `joint` can be computed inside a step whose first joint is `anchor`.
    // The caller ensures that the joint reads at least one tensor of the step, has one output of
    // the anchor's shape, and that its other operands are inputs or weights.
    bool (*fuses)(const struct msc_backend *b, const struct msc_graph *g,
                  const struct msc_joint *anchor, const struct msc_joint *joint);
    // Chooses the layouts for a step, given the layouts in which its inputs are available.
    void (*layouts)(const struct msc_backend *b, const struct msc_graph *g,
                    const struct msc_step *step, const enum msc_layout coming[],
                    struct msc_step_layouts *out);
    // Makes step->kernel. Called once for every step except aliases, from one thread.
    enum msc_status (*prepare)(struct msc_backend *b, const struct msc_plan *plan,
                               struct msc_step *step);
    void (*release)(struct msc_backend *b, struct msc_step *step);
    // Optional: where a prepared step runs. The strings are static.
    struct msc_placement (*place)(const struct msc_backend *b, const struct msc_step *step);

    // Optional, all three or none: the variants of a step, which depend on whether it computes
    // floats or integers; so they are known after its first run. False: it has none, or did not
    // run.
    bool (*variants)(const struct msc_backend *b, const struct msc_step *step,
                     struct msc_variants *out);
    // Later runs of the step use this variant; -1: what is kept or, if nothing is, by_rule. No run
    // may be in progress.
    void (*choose)(struct msc_backend *b, const struct msc_step *step, int variant);
    // Keeps choices for this device, for backends opened later, in options.cache_folder. They
    // replace those kept for equal work. MSC_E_INVALID: there is no folder.
    // With n = 0 it only shows whether something can be kept.
    enum msc_status (*keep)(struct msc_backend *b, const struct msc_kept_choice choices[],
                            size_t n);

    // Packs the step's weights and bias for its kernel. `edits` has one edit per weight slot (NULL:
    // float), and at least one element even if the step has no slot. If the step needs no weights,
    // *out is NULL and *n_bytes is 0. May be called from any thread.
    enum msc_status (*weights)(struct msc_backend *b, const struct msc_step *step,
                               const struct msc_edit *const edits[], void **out, size_t *n_bytes);
    void (*release_weights)(struct msc_backend *b, const struct msc_step *step, void *weights);

    // Running up to this many calls of one step together costs less than running them one by one;
    // 0 or 1: there is no gain. `run` accepts any number.
    int32_t max_calls;
    // Runs n calls of one step. `thread` < n_threads; calls with different threads may overlap.
    // MSC_E_LOST (any function that uses the device may return it): the device is lost with
    // everything it holds, including results of earlier calls that returned MSC_OK. It remains lost
    // until the backend is closed.
    enum msc_status (*run)(struct msc_backend *b, const struct msc_step *step,
                           const struct msc_call calls[], size_t n, int thread);
    // Optional: true if runs of this step can write quantised variants of their output
    // (msc_call.quantized).
    bool (*quantizes)(const struct msc_backend *b, const struct msc_step *step);
    // Optional: true if the step only moves or selects elements. Such a step also runs when all
    // inputs and output 0 are integers of one common quantisation (view.quant). The integers of the
    // output equal the quantised float32 output.
    bool (*is_movement)(const struct msc_backend *b, const struct msc_step *step);
    // Quantises float32 to uint8 or int8 (if out->quant is set) or to fake-quantised float32.
    enum msc_status (*quantize)(struct msc_backend *b, const struct msc_view *in,
                                const struct msc_view *out, const struct msc_quant *q, int thread);

    // Optional, and only if memory_is_host is false: the least and the greatest element of a
    // float32 tensor and 0. NaN is ignored. MSC_E_UNSUPPORTED: the host must find them.
    enum msc_status (*range)(struct msc_backend *b, const struct msc_view *in, float *least,
                             float *greatest);

    // Copies a float32 tensor and sets the channels that the mask does not keep to 0.
    // MSC_E_INVALID: the mask does not fit the tensor.
    enum msc_status (*mask)(struct msc_backend *b, const struct msc_view *in,
                            const struct msc_view *out, const struct msc_channel_mask *mask,
                            int thread);

    // Optional, both or none, and only if memory_is_host is false: compares n tensors with
    // references, with the bits of msc_squares_sum, and waits for the results. `compares` is true
    // if the backend can do so, and the host would have to download the tensor. `n` is the number
    // of elements of a sample.
    bool (*compares)(struct msc_backend *b, const struct msc_view *z, int64_t n);
    enum msc_status (*compare)(struct msc_backend *b, const struct msc_comparison items[],
                               size_t n);

    // Memory of the backend. `allocate` returns NULL if there is not enough.
    bool memory_is_host; // addresses are host pointers: data can be read without a download
    void *(*allocate)(struct msc_backend *b, size_t n_bytes);
    void (*release_memory)(struct msc_backend *b, void *memory, size_t n_bytes);
    // Optional, and only if memory_is_host is false: how much memory is used and available.
    void (*memory)(struct msc_backend *b, struct msc_backend_memory *out);
    // Optional, and only if memory_is_host is false.
    void (*transfers)(struct msc_backend *b, struct msc_backend_transfers *out);
    enum msc_status (*upload)(struct msc_backend *b, void *memory, const void *host,
                              size_t n_bytes);
    enum msc_status (*download)(struct msc_backend *b, void *host, const void *memory,
                                size_t n_bytes);
    // Optional: several downloads with a single wait.
    enum msc_status (*download_all)(struct msc_backend *b, void *const hosts[],
                                    const void *const memories[], const size_t n_bytes[], size_t n);
};

// A backend's own structure begins with this one.
struct msc_backend {
    const struct msc_backend_def *def;
    struct msc_backend_options options;
};

// The device and kernel of a step. An alias step has no kernel ("none"). The strings are static.
struct msc_placement msc_backend_place(const struct msc_backend *b, const struct msc_step *step);

// For activations: true if values under this edit are stored as integers (8 bits or fewer). For
// weights: true if they can be multiplied as integers. They cannot if they are quantised in groups,
// because the scale then changes along the sum.
bool msc_quant_is_integer(const struct msc_quant *q);
// True if values are stored as integers and their scale is known before they are: false for a
// dynamic quantisation. `q` may be NULL (false).
bool msc_quant_is_static(const struct msc_quant *q);
// The type that stores values under q: uint8 or int8, depending on the range of q; MSC_DTYPE_F32
// for wider ranges and float types.
enum msc_dtype msc_quant_dtype(const struct msc_quant *q);

// Splits the elements of a view into [outer][mask->n][inner] around the channels of a mask.
// MSC_E_INVALID: the mask does not fit the view.
enum msc_status msc_mask_place(int64_t *outer, int64_t *inner, const struct msc_view *v,
                               const struct msc_channel_mask *mask);
// Like msc_mask_place, but around the channels of a quantisation with one scale per channel.
enum msc_status msc_quant_place(int64_t *outer, int64_t *inner, const struct msc_view *v,
                                const struct msc_quant *q);

// The sum of (y - z)^2 over n elements, in double: every operation is rounded once. Element i is
// added to partial sum i % MSC_MATHS_LANES, in the order of i; msc_maths_add_lanes adds these.
double msc_squares_sum(const float y[], const float z[], int64_t n);

// The backend's memory. If the backend has no `memory` function, 0 bytes are used and room_bytes is
// UINT64_MAX (not known).
struct msc_backend_memory msc_backend_get_memory(struct msc_backend *b);

// The backend's transfers. Without a `transfers` function, all numbers are 0.
struct msc_backend_transfers msc_backend_get_transfers(struct msc_backend *b);

void msc_backend_close(struct msc_backend *b); // accepts NULL

MSC_PUBLIC_END

#endif
