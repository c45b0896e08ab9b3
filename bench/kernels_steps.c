// Steps of a backend as jobs. Each is planned as in a search, in a small graph of its own
// (kernels_cases.c), and only that step is run.
#include "bench/kernels.h"

#include "base/alloc.h"
#include "kernels/engine/planner.h"

#include <stdio.h>
#include <string.h>

// ---- Memory -----------------------------------------------------------------------------------

// On the host, all views of a thread are in one contiguous block, so that the copy used as a
// ceiling can run in the same memory.
struct block {
    void *data;
    size_t n_bytes;
};

static void kernels_steps_fill(void *host, size_t n_bytes, enum msc_dtype dtype) {
    if (dtype == MSC_DTYPE_F32) {
        bench_fill(host, (int64_t)(n_bytes / sizeof(float)));
        return;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        ((uint8_t *)host)[i] = (uint8_t)(i % 61);
    }
}

static enum msc_status give_device_memory(struct msc_backend *b, struct msc_view *v) {
    size_t n_bytes = msc_view_n_bytes(v) + 64;
    v->data = b->def->allocate(b, n_bytes);
    void *host = msc_alloc(n_bytes);
    if (!v->data || !host) {
        msc_free(host);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    kernels_steps_fill(host, n_bytes, v->dtype);
    enum msc_status status = b->def->upload(b, v->data, host, n_bytes);
    msc_free(host);
    return status;
}

static size_t bytes_in_block(const struct msc_view *v) {
    return (msc_view_n_bytes(v) + 63) / 64 * 64;
}

// Allocates memory for views and fills it with small numbers.
static enum msc_status give_memory(struct msc_backend *b, struct block *block,
                                   struct msc_view *const views[], int n) {
    if (!b->def->memory_is_host) {
        for (int i = 0; i < n; i++) {
            MSC_TRY(give_device_memory(b, views[i]));
        }
        return MSC_OK;
    }
    for (int i = 0; i < n; i++) {
        block->n_bytes += bytes_in_block(views[i]);
    }
    block->n_bytes = (block->n_bytes + 127) / 128 * 128;
    block->data = b->def->allocate(b, block->n_bytes);
    MSC_TRY(MSC_ALLOCATED(block->data));
    char *at = block->data;
    for (int i = 0; i < n; i++) {
        views[i]->data = at;
        kernels_steps_fill(at, bytes_in_block(views[i]), views[i]->dtype);
        at += bytes_in_block(views[i]);
    }
    return MSC_OK;
}

static void release_memory(struct msc_backend *b, struct block *block,
                           struct msc_view *const views[], int n) {
    if (b->def->memory_is_host) {
        if (block->data) {
            b->def->release_memory(b, block->data, block->n_bytes);
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        if (views[i]->data) {
            b->def->release_memory(b, views[i]->data, msc_view_n_bytes(views[i]) + 64);
        }
    }
}

// Adds the copy that is the ceiling of a job that moves bytes; NULL on a device.
static enum msc_status add_copy(struct bench_job **out, struct bench_jobs *jobs,
                                const struct block blocks[BENCH_MAX_THREADS]) {
    void *memory[BENCH_MAX_THREADS];
    for (int t = 0; t < BENCH_MAX_THREADS; t++) {
        memory[t] = blocks[t].data;
    }
    *out = NULL;
    return memory[0] ? bench_add_copy(out, jobs, memory, blocks[0].n_bytes) : MSC_OK;
}

// ---- Steps ------------------------------------------------------------------------------------

enum { MAX_INPUTS = 2 };

// Types of a step's input and output.
enum variant {
    VARIANT_FLOAT,     // float32 in and out
    VARIANT_BYTES,     // bytes in and out, as between two integer joints
    VARIANT_BYTES_IN,  // bytes in, float32 out
    VARIANT_BYTES_OUT, // float32 in, bytes out
};
static const char *const variant_names[] = {"", " u8>u8", " u8>f32", " f32>u8"};

struct step_job {
    struct msc_backend *backend;
    struct msc_plan *plan;
    const struct msc_step *step;
    struct msc_quant in, out;
    int32_t zero_point; // zero point of `in`
    struct msc_edit weight;
    float *weight_scales;
    int32_t *weight_zeros;
    void *weights;
    struct msc_view inputs[BENCH_MAX_THREADS][MAX_INPUTS], outputs[BENCH_MAX_THREADS];
    struct msc_quantized quantized[BENCH_MAX_THREADS];
    struct block blocks[BENCH_MAX_THREADS];
    bool is_movement;  // copies elements of any type
    bool is_quantised; // the output is in msc_call.quantized
};

static const float in_scale = 0.02f, out_scale = 0.5f;
static const int32_t no_zero_point = 0;

static enum msc_status run_step(void *state, int thread, int n_calls) {
    enum { AT_ONCE = 32 };
    struct step_job *s = state;
    struct msc_call calls[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        calls[i] = (struct msc_call){.inputs = s->inputs[thread],
                                     .outputs = &s->outputs[thread],
                                     .weights = s->weights,
                                     .quantized = &s->quantized[thread],
                                     .n_quantized = s->is_quantised};
    }
    const struct msc_backend_def *def = s->backend->def;
    for (int done = 0; done < n_calls; done += AT_ONCE) {
        size_t n = (size_t)(n_calls - done < AT_ONCE ? n_calls - done : AT_ONCE);
        MSC_TRY(def->run(s->backend, s->step, calls, n, thread));
    }
    if (!def->memory_is_host) {
        float waited_for;
        const struct msc_view *v =
            s->is_quantised ? &s->quantized[thread].view : &s->outputs[thread];
        MSC_TRY(def->download(s->backend, &waited_for, v->data, sizeof(waited_for)));
    }
    return MSC_OK;
}

static void destroy_step(void *state) {
    struct step_job *s = state;
    const struct msc_backend_def *def = s->backend->def;
    for (int t = 0; t < BENCH_MAX_THREADS; t++) {
        struct msc_view *views[] = {&s->inputs[t][0], &s->inputs[t][1], &s->outputs[t],
                                    &s->quantized[t].view};
        release_memory(s->backend, &s->blocks[t], views, 4);
    }
    if (s->weights) {
        def->release_weights(s->backend, s->step, s->weights);
    }
    msc_plan_destroy(s->plan);
    msc_free(s->weight_scales);
    msc_free(s->weight_zeros);
    msc_free(s);
}

static void set_activation(struct msc_quant *q, const float *scale, const int32_t *zero_point) {
    *q = (struct msc_quant){.bits = 8,
                            .low = 0,
                            .high = 255,
                            .axis = -1,
                            .n = 1,
                            .scales = scale,
                            .zero_points = zero_point};
    msc_quant_seal(q);
}

static enum msc_status make_weights(struct step_job *s, int64_t channels, bool is_quantised) {
    size_t n_bytes;
    const struct msc_edit *edits[MSC_STEP_MAX_WEIGHTS] = {NULL};
    if (is_quantised) {
        s->weight_scales = msc_alloc_zero((size_t)channels, sizeof(float));
        s->weight_zeros = msc_alloc_zero((size_t)channels, sizeof(int32_t));
        MSC_TRY(MSC_ALLOCATED(s->weight_scales && s->weight_zeros));
        for (int64_t i = 0; i < channels; i++) {
            s->weight_scales[i] = 0.01f;
        }
        s->weight = msc_edit_quantize((struct msc_quant){.bits = 8,
                                                         .low = -127,
                                                         .high = 127,
                                                         .axis = 0,
                                                         .n = (int32_t)channels,
                                                         .scales = s->weight_scales,
                                                         .zero_points = s->weight_zeros});
        edits[0] = &s->weight;
    }
    return s->backend->def->weights(s->backend, s->step, edits, &s->weights, &n_bytes);
}

// Makes the views of one thread; *n_bytes becomes what a call reads and writes.
static enum msc_status make_views(struct step_job *s, enum variant variant, int thread,
                                  double *n_bytes) {
    struct msc_view *views[MAX_INPUTS + 1];
    struct msc_view *made = &s->outputs[thread];
    bool is_movement = variant == VARIANT_BYTES && s->is_movement;
    int n = 0;
    for (int32_t i = 0; i < s->step->n_inputs; i++) {
        struct msc_view *v = &s->inputs[thread][i];
        *v = msc_plan_view(s->plan, s->step->inputs[i], NULL);
        if (variant == VARIANT_BYTES || variant == VARIANT_BYTES_IN) {
            v->dtype = MSC_DTYPE_U8;
            v->quant = &s->in;
        }
        views[n++] = v;
    }
    *made = msc_plan_view(s->plan, s->step->outputs[0], NULL);
    if (!is_movement && (variant == VARIANT_BYTES || variant == VARIANT_BYTES_OUT)) {
        s->is_quantised = true;
        s->quantized[thread] = (struct msc_quantized){*made, &s->out};
        made = &s->quantized[thread].view;
    }
    if (variant == VARIANT_BYTES || variant == VARIANT_BYTES_OUT) {
        made->dtype = MSC_DTYPE_U8;
        made->quant = is_movement ? &s->in : &s->out;
    }
    views[n++] = made;
    *n_bytes = 0;
    for (int i = 0; i < n; i++) {
        *n_bytes += (double)msc_view_n_bytes(views[i]);
    }
    return give_memory(s->backend, &s->blocks[thread], views, n);
}

// Finds the step whose first joint has this operator, in a plan made for the graph.
static enum msc_status plan_step(struct step_job *s, struct msc_graph *g, int32_t output,
                                 enum msc_op op) {
    enum msc_status status = msc_graph_set_outputs(g, 1, &output);
    if (status == MSC_OK) {
        status = msc_graph_finalize(g);
    }
    if (status != MSC_OK) {
        msc_graph_destroy(g);
        return status;
    }
    output = msc_graph_output(g, 0);
    MSC_TRY(msc_plan_create(&s->plan, g, s->backend, &output, 1));
    for (int32_t i = 0; i < s->plan->n_steps; i++) {
        const struct msc_step *step = &s->plan->steps[i];
        if (step->n_joints > 0 && step->joints[0].joint->op == op && step->n_inputs <= MAX_INPUTS) {
            s->step = step;
        }
    }
    return s->step ? MSC_OK : MSC_FAIL(MSC_E_UNSUPPORTED, "no step starts with this operator");
}

static enum msc_status kernels_steps_prepare(struct step_job *s, const struct kernel_case *row,
                                             enum variant variant, int n_threads, double *n_bytes) {
    struct msc_graph *g;
    struct bench_product p;
    int32_t y;
    bool is_product = bench_product_of(&p, row);
    MSC_TRY(bench_build(&g, &y, row));
    MSC_TRY(plan_step(s, g, y, row->op));
    const struct msc_backend_def *def = s->backend->def;
    bool is_out = variant == VARIANT_BYTES || variant == VARIANT_BYTES_OUT;
    s->is_movement = def->is_movement && def->is_movement(s->backend, s->step);
    if (is_out && (!def->quantizes || !def->quantizes(s->backend, s->step))) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "the step cannot quantise its output");
    }
    s->zero_point = is_product ? p.zero_point : 0;
    set_activation(&s->in, &in_scale, &s->zero_point);
    set_activation(&s->out, &out_scale, &no_zero_point);
    if (is_product) {
        MSC_TRY(make_weights(s, p.out, variant != VARIANT_FLOAT));
    }
    for (int t = 0; t < n_threads; t++) {
        MSC_TRY(make_views(s, variant, t, n_bytes));
    }
    return MSC_OK;
}

// 0 if the step only moves bytes.
static double count_operations(const struct step_job *s, const struct kernel_case *row) {
    struct bench_product p;
    return bench_product_of(&p, row) ? bench_product_operations(&p) : 2.0 * s->step->macs;
}

static enum msc_status kernels_steps_add_step(struct bench_jobs *jobs, struct msc_backend *b,
                                              const struct kernel_case *row, enum variant variant,
                                              int n_threads) {
    struct step_job *s = msc_alloc_zero(1, sizeof(*s));
    char name[64];
    double n_bytes = 0;
    MSC_TRY(MSC_ALLOCATED(s));
    s->backend = b;
    enum msc_status status = kernels_steps_prepare(s, row, variant, n_threads, &n_bytes);
    if (status != MSC_OK) {
        destroy_step(s);
        return status;
    }
    double operations = count_operations(s, row);
    struct bench_job *copy = NULL;
    if (operations == 0) {
        MSC_TRY(add_copy(&copy, jobs, s->blocks));
    }
    snprintf(name, sizeof(name), "%s%s", row->name, variant_names[variant]);
    bool has_bytes = variant == VARIANT_BYTES || variant == VARIANT_BYTES_IN;
    struct bench_job *job = bench_add(jobs, name,
                                      operations == 0 ? BENCH_BYTES
                                      : has_bytes     ? BENCH_INT8
                                                      : BENCH_FLOAT,
                                      operations > 0 ? operations : n_bytes);
    job->beside = copy;
    job->state = s;
    job->run = run_step;
    job->destroy = destroy_step;
    return MSC_OK;
}

// ---- Quantising -------------------------------------------------------------------------------

struct quantise_job {
    struct msc_backend *backend;
    struct msc_quant quant;
    struct msc_view in[BENCH_MAX_THREADS], out[BENCH_MAX_THREADS];
    struct block blocks[BENCH_MAX_THREADS];
};

static enum msc_status run_quantise(void *state, int thread, int n_calls) {
    struct quantise_job *q = state;
    for (int i = 0; i < n_calls; i++) {
        MSC_TRY(q->backend->def->quantize(q->backend, &q->in[thread], &q->out[thread], &q->quant,
                                          thread));
    }
    if (!q->backend->def->memory_is_host) {
        uint32_t waited_for;
        MSC_TRY(q->backend->def->download(q->backend, &waited_for, q->out[thread].data,
                                          sizeof(waited_for)));
    }
    return MSC_OK;
}

static void destroy_quantise(void *state) {
    struct quantise_job *q = state;
    for (int t = 0; t < BENCH_MAX_THREADS; t++) {
        struct msc_view *views[] = {&q->in[t], &q->out[t]};
        release_memory(q->backend, &q->blocks[t], views, 2);
    }
    msc_free(q);
}

static enum msc_status add_quantise(struct bench_jobs *jobs, struct msc_backend *b, int n_threads) {
    struct quantise_job *q = msc_alloc_zero(1, sizeof(*q));
    struct msc_view v = {.dtype = MSC_DTYPE_F32, .n_dims = 4, .dims = {8, 64, 56, 56}};
    MSC_TRY(MSC_ALLOCATED(q));
    q->backend = b;
    set_activation(&q->quant, &in_scale, &no_zero_point);
    for (int t = 0; t < n_threads; t++) {
        q->in[t] = q->out[t] = v;
        q->out[t].dtype = MSC_DTYPE_U8;
        q->out[t].quant = &q->quant;
        struct msc_view *views[] = {&q->in[t], &q->out[t]};
        MSC_TRY(give_memory(b, &q->blocks[t], views, 2));
    }
    double n_bytes = (double)(msc_view_n_bytes(&q->in[0]) + msc_view_n_bytes(&q->out[0]));
    struct bench_job *copy;
    MSC_TRY(add_copy(&copy, jobs, q->blocks));
    struct bench_job *job = bench_add(jobs, "quantise 6.4 MB f32>u8", BENCH_BYTES, n_bytes);
    job->beside = copy;
    job->state = q;
    job->run = run_quantise;
    job->destroy = destroy_quantise;
    return MSC_OK;
}

// True if the name starts with one of the words, which are separated by commas.
static bool is_wanted(const char *name, const char *words) {
    for (const char *word = words;; word++) {
        size_t length = strcspn(word, ",");
        if (strncmp(name, word, length) == 0) {
            return true;
        }
        word += length;
        if (*word == '\0') {
            return false;
        }
    }
}

// Returns the next row to measure. Rows of `bench_device` fill a GPU and would take too long on a
// processor.
static const struct kernel_case *next_row(const struct kernel_case *row,
                                          const struct msc_backend *backend) {
    do {
        row = row ? row + 1 : kernel_cases;
    } while (row < kernel_cases + kernel_n_cases && !kernel_case_has_reader(row, "bench") &&
             (backend->def->memory_is_host || !kernel_case_has_reader(row, "bench_device")));
    return row < kernel_cases + kernel_n_cases ? row : NULL;
}

// Adds the rows of one variant whose names are wanted: either products, or all other rows.
static enum msc_status add_variant(struct bench_jobs *jobs, struct msc_backend *backend,
                                   int n_threads, const char *only, bool of_products,
                                   enum variant variant) {
    const struct kernel_case *row = NULL;
    while ((row = next_row(row, backend))) {
        struct bench_product p;
        if (bench_product_of(&p, row) != of_products || !is_wanted(row->name, only)) {
            continue;
        }
        enum msc_status status = kernels_steps_add_step(jobs, backend, row, variant, n_threads);
        if (status != MSC_OK && status != MSC_E_UNSUPPORTED) {
            return msc_status_prefix(status, "%s", row->name);
        }
    }
    return MSC_OK;
}

enum msc_status bench_add_steps(struct bench_jobs *jobs, struct msc_backend *backend, int n_threads,
                                const char *only) {
    static const enum variant product_variants[] = {VARIANT_FLOAT, VARIANT_BYTES, VARIANT_BYTES_IN};
    static const enum variant other_variants[] = {VARIANT_FLOAT, VARIANT_BYTES_OUT, VARIANT_BYTES};
    for (int f = 0; f < 3; f++) {
        MSC_TRY(add_variant(jobs, backend, n_threads, only, true, product_variants[f]));
    }
    for (int f = 0; f < 3; f++) {
        MSC_TRY(add_variant(jobs, backend, n_threads, only, false, other_variants[f]));
    }
    return is_wanted("quantise", only) ? add_quantise(jobs, backend, n_threads) : MSC_OK;
}
