// The backend interface: what computes. `cpu` (oneDNN and own C kernels) and `vulkan` are the two.
//
// A backend is one `const struct msc_backend_def`. The plan asks it how to group joints and which
// layouts to use, then prepares each step once; the evaluator makes weight variants, allocates
// buffers and runs steps. Results depend on a step, its inputs and its weight variant only, never
// on threads, on what else is in a call, or on earlier calls.
//
// A joint computes over integers where its input and its weight come as such (one scale and zero
// point of the input, at most one of each output channel c of the weight) and every sum fits int32
// and can be put together of exact float32 sums: W = max over c of sum |q_w - z_w| below 2^23, and
// B = W * max |q_x - z_x| below 2^31. Then, each line rounded once to float32,
//
//     t = s_x * s_w[c]    y = t * (float)sum    y += b[c]
//
// Where each channel has sums of its own, as in depthwise convolutions, the input may have a scale and
// a zero point for each as well, and s_x is that of the channel. Such sums are below 2^24: else, and
// in any other joint, the input is read as the float32 numbers that it stands for.
//
// A bias that is rounded (graph/edit.h) to a step of just t for every c, compared bit by bit, of an
// input with one scale, and for which B + max |q_b| is below 2^31, joins the sum instead:
// y = t * (float)(sum + q_b[c]). Rounded otherwise it is a float32 like any other, b = (float)q_b *
// step. So the bits of such a joint depend on neither unit nor backend.
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
    int n_threads;            // callers of run, numbered 0 … n_threads - 1; at least 1
    int kernel_threads;       // threads inside one kernel; 1 wherever results are recorded
    bool allow_int8;          // integer units where they exist
    const char *cache_folder; // for compiled kernels; may be NULL
    const struct msc_log *log;
    // For steps that the backend has no kernel of its own for; NULL where it has one for all.
    const struct msc_backend_def *fallback;
};

#define MSC_BACKEND_OPTIONS_INIT                                                                   \
    { .n_threads = 1, .kernel_threads = 1, .allow_int8 = true }

// A quantised variant of a step's output, to write while its float32 elements are at hand, as
// `quantize` would.
struct msc_quantized {
    struct msc_view view;          // view.quant is NULL for fake-quantised float32
    const struct msc_quant *quant; // always given
};

// One run of a prepared step. Inputs carry their format: any float32 input may come as integers of a
// quantisation with one scale, or one for each channel (view.quant), each of its own. What is not
// computed over integers as above gives the bits that the dequantised values (float)(q - z) * s would.
// Outputs are allocated by the caller as the plan's values say.
struct msc_call {
    const struct msc_view *inputs;  // [step.n_inputs]
    const struct msc_view *outputs; // [step.n_outputs]
    const void *weights;            // variant made by `weights`; NULL when the step has none
    // Only for steps that `quantizes`: quantised variants of output 0. With any, output 0 may have
    // no data; they are then written instead of it.
    const struct msc_quantized *quantized; // [n_quantized]
    int32_t n_quantized;
    const struct msc_reference_limits *limits; // for steps that run bodies; NULL: none
};

// How a step wants its values.
struct msc_step_layouts {
    enum msc_layout inputs[MSC_MAX_DIMS * 8]; // [step.n_inputs], at most 64
    enum msc_layout outputs;
    bool is_alias; // output 0 has the bytes of input 0
};
#define MSC_STEP_MAX_INPUTS 64

// What computes a step.
struct msc_placement {
    const char *device; // "cpu", "vulkan"
    const char *kernel; // the family of kernels: "convolution", "reference"
};

// Memory of a backend for whom memory_is_host is not set.
struct msc_backend_memory {
    bool is_host;        // the host's all the same: of an integrated GPU, of a software driver
    uint64_t used_bytes; // by what was allocated and packed, and by what the backend keeps besides
    uint64_t besides_bytes; // that a run has taken besides, at most
    uint64_t room_bytes;    // that could be had now, about; UINT64_MAX: not known
    uint64_t touched_bytes; // used at some time and not given back: the process holds it
};

struct msc_backend_def {
    const char *name;
    enum msc_status (*open)(struct msc_backend **out, const struct msc_backend_options *options);
    void (*close)(struct msc_backend *b);
    // Everything that can change a bit of a result, one line: "cpu/1 onednn-2.6.3 avx512 ...".
    const char *(*numerics)(const struct msc_backend *b);

    // Planning. May `joint` be computed inside a step anchored at `anchor` (its first joint)? It
    // reads at least one of the step's tensors, has one output of the same shape as the anchor's,
    // and its other operands are inputs or weights.
    bool (*fuses)(const struct msc_backend *b, const struct msc_graph *g,
                  const struct msc_joint *anchor, const struct msc_joint *joint);
    // Layouts for a step, given those its inputs come in.
    void (*layouts)(const struct msc_backend *b, const struct msc_graph *g,
                    const struct msc_step *step, const enum msc_layout coming[],
                    struct msc_step_layouts *out);
    // Makes step->kernel. Every step but aliases is prepared. Called once, from one thread.
    enum msc_status (*prepare)(struct msc_backend *b, const struct msc_plan *plan,
                               struct msc_step *step);
    void (*release)(struct msc_backend *b, struct msc_step *step);
    // Optional: where a prepared step runs. Texts are static.
    struct msc_placement (*place)(const struct msc_backend *b, const struct msc_step *step);

    // The step's weights and bias packed for its kernel, under an edit for each of its weight slots
    // (NULL: float); one may be read even where there is no slot.
    // *out is NULL and *n_bytes 0 when the step needs none. From any thread.
    enum msc_status (*weights)(struct msc_backend *b, const struct msc_step *step,
                               const struct msc_edit *const edits[], void **out, size_t *n_bytes);
    void (*release_weights)(struct msc_backend *b, const struct msc_step *step, void *weights);

    // So many calls of one step run together at less cost than alone; 0 or 1: there is nothing in
    // it. `run` takes any number all the same.
    int32_t max_calls;
    // Runs n calls of one step. `thread` < n_threads; calls with different threads may overlap.
    // MSC_E_LOST, here and wherever the device is used: it is lost with all that it holds, also what
    // earlier calls were said to have done. So it stays until the backend is closed.
    enum msc_status (*run)(struct msc_backend *b, const struct msc_step *step,
                           const struct msc_call calls[], size_t n, int thread);
    // Optional: can runs of this step write quantised variants of their output
    // (msc_call.quantized)?
    bool (*quantizes)(const struct msc_backend *b, const struct msc_step *step);
    // Optional: is the step data movement, or a choice among elements? Then it also runs with
    // every input, and output 0 (view.quant), in the quantised variant of one quantisation: the
    // output is what quantising its float32 elements would be.
    bool (*is_movement)(const struct msc_backend *b, const struct msc_step *step);
    // float32 in to integers (out->quant set, uint8 or int8) or to fake-quantised float32.
    enum msc_status (*quantize)(struct msc_backend *b, const struct msc_view *in,
                                const struct msc_view *out, const struct msc_quant *q, int thread);

    // float32 in to float32 out, 0 where a channel is not kept. MSC_E_INVALID: it does not fit.
    enum msc_status (*mask)(struct msc_backend *b, const struct msc_view *in,
                            const struct msc_view *out, const struct msc_channel_mask *mask,
                            int thread);

    // Memory of the backend. NULL when short.
    bool memory_is_host; // its addresses are host pointers: no download needed to read them
    void *(*allocate)(struct msc_backend *b, size_t n_bytes);
    void (*release_memory)(struct msc_backend *b, void *memory, size_t n_bytes);
    // Optional, and only without memory_is_host: how much there is of it.
    void (*memory)(struct msc_backend *b, struct msc_backend_memory *out);
    enum msc_status (*upload)(struct msc_backend *b, void *memory, const void *host,
                              size_t n_bytes);
    enum msc_status (*download)(struct msc_backend *b, void *host, const void *memory,
                                size_t n_bytes);
    // Optional: several downloads that wait once.
    enum msc_status (*download_all)(struct msc_backend *b, void *const hosts[],
                                    const void *const memories[], const size_t n_bytes[], size_t n);
};

// What a backend's own structure begins with.
struct msc_backend {
    const struct msc_backend_def *def;
    struct msc_backend_options options;
};

// Where a step runs, aliases where their value is. Texts are static.
struct msc_placement msc_backend_place(const struct msc_backend *b, const struct msc_step *step);

// Is an activation edit stored as integers? (8 bits or fewer.) For weights: may they be multiplied
// as such? Not in groups, whose scales change along the sum.
bool msc_quant_is_integer(const struct msc_quant *q);
// uint8 or int8 by its range; MSC_DTYPE_F32 for wider ones and float types.
enum msc_dtype msc_quant_dtype(const struct msc_quant *q);

// The elements of a view lie as [outer][mask->n][inner] around the channels of a mask.
// MSC_E_INVALID: it does not fit.
enum msc_status msc_mask_place(int64_t *outer, int64_t *inner, const struct msc_view *v,
                               const struct msc_channel_mask *mask);
// The same around the channels of a quantisation that has a scale for each.
enum msc_status msc_quant_place(int64_t *outer, int64_t *inner, const struct msc_view *v,
                                const struct msc_quant *q);

// Of a backend that does not tell: nothing is used, and no bound to what could be had is known.
struct msc_backend_memory msc_backend_get_memory(struct msc_backend *b);

void msc_backend_close(struct msc_backend *b); // accepts NULL

MSC_PUBLIC_END

#endif
