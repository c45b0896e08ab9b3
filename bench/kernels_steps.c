// Steps of a backend as jobs: each is planned as in a search, in a small graph of its own
// (kernels_cases.c), of which the one step in question is run.
#include "bench/kernels.h"

#include "base/alloc.h"

#include <stdio.h>

// ---- Steps ------------------------------------------------------------------------------------

enum { MAX_INPUTS = 2 };

// The forms that a step is run in.
enum form {
    FORM_FLOAT,      // float32 in and out
    FORM_BYTES,      // bytes in and out: what lies between two integer joints
    FORM_BYTES_IN,   // bytes in, float32 out
    FORM_BYTES_OUT,  // float32 in, bytes out
};
static const char *const form_names[] = {"", " u8>u8", " u8>f32", " f32>u8"};

struct step_job {
    struct msc_backend *backend;
    struct msc_plan *plan;
    const struct msc_step *step;
    struct msc_quant in, out, weight;
    float *weight_scales;
    int32_t *weight_zeros;
    void *weights;
    struct msc_view inputs[BENCH_MAX_THREADS][MAX_INPUTS], outputs[BENCH_MAX_THREADS];
    struct msc_quantized quantized[BENCH_MAX_THREADS];
    bool is_quantised;
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
        const struct msc_view *v = s->is_quantised ? &s->quantized[thread].view
                                                   : &s->outputs[thread];
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
        for (int i = 0; i < 4; i++) {
            if (views[i]->data) {
                def->release_memory(s->backend, views[i]->data, msc_view_n_bytes(views[i]) + 64);
            }
        }
    }
    if (s->weights) {
        def->release_weights(s->backend, s->step, s->weights);
    }
    msc_plan_destroy(s->plan);
    msc_free(s->weight_scales);
    msc_free(s->weight_zeros);
    msc_free(s);
}

// Memory for a view, filled with small numbers.
static enum msc_status give_memory(struct msc_backend *b, struct msc_view *v) {
    size_t n_bytes = msc_view_n_bytes(v) + 64;
    v->data = b->def->allocate(b, n_bytes);
    void *host = msc_alloc(n_bytes);
    if (!v->data || !host) {
        msc_free(host);
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    if (v->dtype == MSC_DTYPE_F32) {
        bench_fill(host, (int64_t)(n_bytes / sizeof(float)));
    } else {
        for (size_t i = 0; i < n_bytes; i++) {
            ((uint8_t *)host)[i] = (uint8_t)(i % 61);
        }
    }
    enum msc_status status = b->def->upload(b, v->data, host, n_bytes);
    msc_free(host);
    return status;
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
    const struct msc_quant *edit = NULL;
    if (is_quantised) {
        s->weight_scales = msc_alloc_zero((size_t)channels, sizeof(float));
        s->weight_zeros = msc_alloc_zero((size_t)channels, sizeof(int32_t));
        if (!s->weight_scales || !s->weight_zeros) {
            return MSC_FAIL(MSC_E_NOMEM, "out of memory");
        }
        for (int64_t i = 0; i < channels; i++) {
            s->weight_scales[i] = 0.01f;
        }
        s->weight = (struct msc_quant){.bits = 8,
                                       .low = -127,
                                       .high = 127,
                                       .axis = 0,
                                       .n = (int32_t)channels,
                                       .scales = s->weight_scales,
                                       .zero_points = s->weight_zeros};
        msc_quant_seal(&s->weight);
        edit = &s->weight;
    }
    return s->backend->def->weights(s->backend, s->step, edit, &s->weights, &n_bytes);
}

// Views of all threads in the given form; *n_bytes is what one call reads and writes.
static enum msc_status make_views(struct step_job *s, enum form form, int n_threads,
                                  double *n_bytes) {
    *n_bytes = 0;
    for (int t = 0; t < n_threads; t++) {
        for (int32_t i = 0; i < s->step->n_inputs; i++) {
            struct msc_view *v = &s->inputs[t][i];
            *v = msc_plan_view(s->plan, s->step->inputs[i], NULL);
            if (form == FORM_BYTES || form == FORM_BYTES_IN) {
                v->dtype = MSC_DTYPE_U8;
                v->quant = &s->in;
            }
            MSC_TRY(give_memory(s->backend, v));
            *n_bytes += t == 0 ? (double)msc_view_n_bytes(v) : 0;
        }
        s->outputs[t] = msc_plan_view(s->plan, s->step->outputs[0], NULL);
        struct msc_view *made = &s->outputs[t];
        if (form == FORM_BYTES || form == FORM_BYTES_OUT) {
            s->is_quantised = true;
            s->quantized[t] = (struct msc_quantized){s->outputs[t], &s->out};
            made = &s->quantized[t].view;
            made->dtype = MSC_DTYPE_U8;
            made->quant = &s->out;
        }
        MSC_TRY(give_memory(s->backend, made));
        *n_bytes += t == 0 ? (double)msc_view_n_bytes(made) : 0;
    }
    return MSC_OK;
}

// The step whose first joint has this operator, of a plan made for the graph.
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
    return s->step ? MSC_OK : MSC_FAIL(MSC_E_UNSUPPORTED, "no step of its own");
}

struct source { // one of both
    const struct bench_product *product;
    const struct bench_mover *mover;
};

static enum msc_status prepare(struct step_job *s, const struct source *from, enum form form,
                               int n_threads, double *n_bytes) {
    struct msc_graph *g;
    int32_t y;
    const struct bench_product *p = from->product;
    MSC_TRY(bench_build(&g, &y, p, from->mover));
    enum msc_op op = !p ? from->mover->op : p->kernel == 0 ? MSC_OP_LINEAR_BIAS
                                                           : MSC_OP_CONV2D_BIAS;
    MSC_TRY(plan_step(s, g, y, op));
    const struct msc_backend_def *def = s->backend->def;
    bool is_out = form == FORM_BYTES || form == FORM_BYTES_OUT;
    if (is_out && (!def->quantizes || !def->quantizes(s->backend, s->step))) {
        return MSC_FAIL(MSC_E_UNSUPPORTED, "it writes no bytes");
    }
    set_activation(&s->in, &in_scale, p ? &p->zero_point : &no_zero_point);
    set_activation(&s->out, &out_scale, &no_zero_point);
    if (p) {
        MSC_TRY(make_weights(s, p->out, form != FORM_FLOAT));
    }
    return make_views(s, form, n_threads, n_bytes);
}

static enum msc_status add_step(struct bench_jobs *jobs, struct msc_backend *b,
                                const struct source *from, enum form form, int n_threads) {
    struct step_job *s = msc_alloc_zero(1, sizeof(*s));
    char name[64];
    double n_bytes = 0;
    if (!s) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    s->backend = b;
    enum msc_status status = prepare(s, from, form, n_threads, &n_bytes);
    if (status != MSC_OK) {
        destroy_step(s);
        return status;
    }
    const struct bench_product *p = from->product;
    double operations = p ? bench_product_operations(p) : from->mover->operations;
    struct bench_job *copy = NULL;
    if (operations == 0 && b->def->memory_is_host) {
        MSC_TRY(bench_add_copy(&copy, jobs, n_bytes));
    }
    snprintf(name, sizeof(name), "%s%s", p ? p->name : from->mover->name, form_names[form]);
    bool has_bytes = form == FORM_BYTES || form == FORM_BYTES_IN;
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
        for (int i = 0; i < 2; i++) {
            if (views[i]->data) {
                q->backend->def->release_memory(q->backend, views[i]->data,
                                                msc_view_n_bytes(views[i]) + 64);
            }
        }
    }
    msc_free(q);
}

static enum msc_status add_quantise(struct bench_jobs *jobs, struct msc_backend *b, int n_threads) {
    struct quantise_job *q = msc_alloc_zero(1, sizeof(*q));
    struct msc_view v = {.dtype = MSC_DTYPE_F32, .n_dims = 4, .dims = {8, 64, 56, 56}};
    if (!q) {
        return MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    q->backend = b;
    set_activation(&q->quant, &in_scale, &no_zero_point);
    for (int t = 0; t < n_threads; t++) {
        q->in[t] = q->out[t] = v;
        q->out[t].dtype = MSC_DTYPE_U8;
        q->out[t].quant = &q->quant;
        MSC_TRY(give_memory(b, &q->in[t]));
        MSC_TRY(give_memory(b, &q->out[t]));
    }
    double n_bytes = (double)(msc_view_n_bytes(&q->in[0]) + msc_view_n_bytes(&q->out[0]));
    struct bench_job *copy = NULL;
    if (b->def->memory_is_host) {
        MSC_TRY(bench_add_copy(&copy, jobs, n_bytes));
    }
    struct bench_job *job = bench_add(jobs, "quantise 6.4 MB f32>u8", BENCH_BYTES, n_bytes);
    job->beside = copy;
    job->state = q;
    job->run = run_quantise;
    job->destroy = destroy_quantise;
    return MSC_OK;
}

enum msc_status bench_add_steps(struct bench_jobs *jobs, struct msc_backend *backend,
                                int n_threads) {
    static const enum form product_forms[] = {FORM_FLOAT, FORM_BYTES, FORM_BYTES_IN};
    static const enum form mover_forms[] = {FORM_FLOAT, FORM_BYTES_OUT};
    for (size_t f = 0; f < sizeof(product_forms) / sizeof(product_forms[0]); f++) {
        for (int i = 0; i < bench_n_products; i++) {
            struct source from = {.product = &bench_products[i]};
            enum msc_status status = add_step(jobs, backend, &from, product_forms[f], n_threads);
            if (status != MSC_OK && status != MSC_E_UNSUPPORTED) {
                return msc_status_prefix(status, "%s", bench_products[i].name);
            }
        }
    }
    for (size_t f = 0; f < sizeof(mover_forms) / sizeof(mover_forms[0]); f++) {
        for (size_t i = 0; i < (size_t)bench_n_movers; i++) {
            struct source from = {.mover = &bench_movers[i]};
            enum msc_status status = add_step(jobs, backend, &from, mover_forms[f], n_threads);
            if (status != MSC_OK && status != MSC_E_UNSUPPORTED) {
                return msc_status_prefix(status, "%s", bench_movers[i].name);
            }
        }
    }
    return add_quantise(jobs, backend, n_threads);
}
