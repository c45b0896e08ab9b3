#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"
#include "kernels/engine/remainder.h"

struct msc_view msc_schedule__target_view(const struct msc_schedule *s, const struct msc_node *node,
                                          int32_t target) {
    const struct msc_scheduled_plan *p = &s->plans[node->plan];
    const struct msc_value_number *targets = msc_schedule__targets(s, p, (size_t)node->trial);
    int32_t value = msc_schedule__target_value(s, p->plan, target);
    return value == MSC_NO_ID ? (struct msc_view){.dtype = MSC_DTYPE_NONE}
                              : msc_schedule__view(s, node, value, targets[target]);
}

// ---- Host memory ------------------------------------------------------------------------------

// A buffer for feeding values. Unused buffers are kept until the schedule is destroyed, because
// allocating fresh memory takes longer than the work on its contents.
struct msc_host_buffer {
    struct msc_host_buffer *next;
    size_t n_bytes;
    char *data;
};

// Takes a buffer of n_bytes. If there is not enough memory, returns a smaller buffer or NULL.
static struct msc_host_buffer *take_buffer(struct msc_schedule *s, size_t n_bytes) {
    pthread_mutex_lock(&s->lock);
    struct msc_host_buffer *b = s->host_buffers;
    s->host_buffers = b ? b->next : NULL;
    pthread_mutex_unlock(&s->lock);
    b = b ? b : msc_alloc_zero(1, sizeof *b);
    if (b && b->n_bytes < n_bytes) {
        msc_free(b->data);
        b->data = msc_alloc(n_bytes);
        b->n_bytes = b->data ? n_bytes : 0;
    }
    return b;
}

static void give_buffer(struct msc_schedule *s, struct msc_host_buffer *b) {
    pthread_mutex_lock(&s->lock);
    b->next = s->host_buffers;
    s->host_buffers = b;
    pthread_mutex_unlock(&s->lock);
}

void msc_schedule__finish_feeding(struct msc_schedule *s) {
    while (s->host_buffers) {
        struct msc_host_buffer *b = s->host_buffers;
        s->host_buffers = b->next;
        msc_free(b->data);
        msc_free(b);
    }
}

// ---- Values -----------------------------------------------------------------------------------

// The values of a group of nodes share one buffer of at most this size. A node with more bytes is a
// group by itself.
#define GROUP_BYTES ((size_t)32 << 20)
#define HOST_ALIGNMENT 64

struct feed {
    struct msc_schedule *s;
    struct msc_arena arena;
    struct msc_view *values; // values of all targets of all nodes, node by node
    struct msc_host_buffer *buffer;
    size_t n_used; // bytes in use
    // Arguments for the next download_all.
    void **hosts;
    const void **memories;
    size_t *n_bytes;
    size_t n;
};

static bool feed_copies(const struct feed *f) {
    return !f->s->options.backend->def->memory_is_host;
}

static size_t feed_aligned(size_t n_bytes) {
    return (n_bytes + HOST_ALIGNMENT) / HOST_ALIGNMENT * HOST_ALIGNMENT;
}

static size_t float_bytes(const struct msc_view *v) {
    return (size_t)msc_view_n_elements(v) * sizeof(float);
}

// The host memory needed to feed values: for downloaded copies, and for the floats that replace
// integers.
static size_t feed_room(const struct feed *f, const struct msc_view values[], int32_t n) {
    size_t n_bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        const struct msc_view *v = &values[i];
        n_bytes += v->data && feed_copies(f) ? feed_aligned(msc_view_n_bytes(v)) : 0;
        n_bytes += v->data && v->quant ? feed_aligned(float_bytes(v)) : 0;
    }
    return n_bytes;
}

static void *feed_take(struct feed *f, size_t n_bytes) {
    void *at = f->buffer->data + f->n_used;
    f->n_used += feed_aligned(n_bytes);
    return at;
}

static enum msc_status feed_list(struct feed *f, const int32_t ids[], int32_t n) {
    size_t n_values = 1, at = 0;
    for (int32_t i = 0; i < n; i++) {
        n_values += (size_t)f->s->nodes[ids[i]].n_targets;
    }
    f->values = msc_arena_array(&f->arena, n_values, sizeof(f->values[0]));
    f->hosts = msc_arena_array(&f->arena, n_values, sizeof(f->hosts[0]));
    f->memories = msc_arena_array(&f->arena, n_values, sizeof(f->memories[0]));
    f->n_bytes = msc_arena_array(&f->arena, n_values, sizeof(f->n_bytes[0]));
    MSC_TRY(MSC_ALLOCATED(f->values && f->hosts && f->memories && f->n_bytes));
    for (int32_t i = 0; i < n; i++) {
        const struct msc_node *node = &f->s->nodes[ids[i]];
        for (int32_t k = 0; k < node->n_targets; k++) {
            f->values[at++] = msc_schedule__target_view(f->s, node, node->first_target + k);
        }
    }
    return MSC_OK;
}

// Returns the number of nodes in the next group. Together they have *n_values values, which need
// *n_bytes of host memory.
static int32_t feed_group(const struct feed *f, const struct msc_view values[], const int32_t ids[],
                          int32_t n, int32_t *n_values, size_t *n_bytes) {
    int32_t n_group = 0;
    *n_values = 0;
    *n_bytes = 0;
    while (n_group < n) {
        int32_t n_targets = f->s->nodes[ids[n_group]].n_targets;
        size_t more = feed_room(f, &values[*n_values], n_targets);
        if (n_group > 0 && *n_bytes + more > GROUP_BYTES) {
            break;
        }
        *n_bytes += more;
        *n_values += n_targets;
        n_group++;
    }
    return n_group;
}

static enum msc_status download_copies(const struct feed *f) {
    struct msc_backend *b = f->s->options.backend;
    if (b->def->download_all) {
        return b->def->download_all(b, f->hosts, f->memories, f->n_bytes, f->n);
    }
    for (size_t i = 0; i < f->n; i++) {
        MSC_TRY(b->def->download(b, f->hosts[i], f->memories[i], f->n_bytes[i]));
    }
    return MSC_OK;
}

// Downloads values if the backend's memory is not host memory.
static enum msc_status download_values(struct feed *f, struct msc_view values[], int32_t n) {
    f->n = 0;
    for (int32_t i = 0; i < n; i++) {
        struct msc_view *v = &values[i];
        if (v->data) {
            f->memories[f->n] = v->data;
            f->n_bytes[f->n] = msc_view_n_bytes(v);
            f->hosts[f->n] = feed_take(f, msc_view_n_bytes(v));
            v->data = f->hosts[f->n++];
        }
    }
    return f->n > 0 ? download_copies(f) : MSC_OK;
}

// Converts integers to floats, because sinks read only float32.
static void dequantize_values(struct feed *f, struct msc_view values[], int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        struct msc_view *v = &values[i];
        if (v->data && v->quant) {
            float *x = feed_take(f, float_bytes(v));
            msc_view_dequantize(x, v);
            v->data = x;
            v->dtype = MSC_DTYPE_F32;
            v->quant = NULL;
        }
    }
}

static enum msc_status bring_to_host(struct feed *f, struct msc_view values[], int32_t n) {
    f->n_used = 0;
    MSC_TRY(feed_copies(f) ? download_values(f, values, n) : MSC_OK);
    dequantize_values(f, values, n);
    return MSC_OK;
}

// ---- The sink ---------------------------------------------------------------------------------

static enum msc_status feed_slot(const struct msc_schedule *s, const struct msc_node *node,
                                 const struct msc_view *value) {
    const struct msc_sink *sink = s->job.sink;
    const struct msc_plan *plan = msc_schedule__plan(s, node);
    int32_t slot = node->first_target - s->n_live_out;
    int32_t joint = plan->sites.slots[slot].joint;
    int32_t part = joint == MSC_NO_ID ? 0 : plan->parts[joint];
    return sink->slot(sink->payload, s->job.first_trial + (size_t)node->trial, (size_t)node->batch,
                      part, plan->slot_ids[slot], value);
}

static enum msc_status feed_live_out(const struct msc_schedule *s, const struct msc_node *node,
                                     const struct msc_view live_out[]) {
    const struct msc_sink *sink = s->job.sink;
    const struct msc_eval_trial *trial = &s->job.trials[node->trial];
    const struct msc_remainder remainder = {.plan = msc_schedule__plan(s, node),
                                            .dataset = s->options.dataset,
                                            .batch = (size_t)node->batch,
                                            .edits = trial->edits,
                                            .noise_seed = trial->noise_seed,
                                            .sink = sink,
                                            .trial = s->job.first_trial + (size_t)node->trial,
                                            .store = s->options.remainder_store,
                                            .limits = s->options.limits};
    if (msc_remainder_is_asked(remainder.plan, sink)) {
        return msc_remainder_run(&remainder, live_out);
    }
    return sink->batch ? sink->batch(sink->payload, remainder.trial, remainder.batch, live_out)
                       : MSC_OK;
}

static enum msc_status feed_node(const struct feed *f, int32_t id, const struct msc_view values[]) {
    const struct msc_node *node = &f->s->nodes[id];
    bool is_slot = node->n_targets > 0 && node->first_target >= f->s->n_live_out;
    return is_slot ? feed_slot(f->s, node, values) : feed_live_out(f->s, node, values);
}

// Brings the values of n sink nodes to host memory, then feeds them node by node until one fails.
// *n_given is the number of nodes that succeeded.
static enum msc_status give_group(struct feed *f, const int32_t ids[], int32_t n,
                                  struct msc_view values[], int32_t n_values, int32_t *n_given) {
    enum msc_status status = bring_to_host(f, values, n_values);
    for (*n_given = 0; status == MSC_OK && *n_given < n; *n_given += status == MSC_OK) {
        status = feed_node(f, ids[*n_given], values);
        values += f->s->nodes[ids[*n_given]].n_targets;
    }
    return status;
}

int32_t msc_schedule__feed_sink(struct msc_schedule *s, const int32_t ids[], int32_t n,
                                enum msc_status *status) {
    struct feed f = {.s = s};
    int32_t n_given = 0;
    *status = feed_list(&f, ids, n);
    struct msc_view *values = f.values;
    while (*status == MSC_OK && n_given < n) {
        int32_t n_values, n_good = 0;
        size_t n_bytes;
        int32_t n_group = feed_group(&f, values, ids + n_given, n - n_given, &n_values, &n_bytes);
        f.buffer = n_bytes > 0 ? take_buffer(s, n_bytes) : NULL;
        if (n_bytes > 0 && (!f.buffer || f.buffer->n_bytes < n_bytes)) {
            *status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
        } else {
            *status = give_group(&f, ids + n_given, n_group, values, n_values, &n_good);
        }
        if (f.buffer) {
            give_buffer(s, f.buffer);
        }
        values += n_values;
        n_given += n_good;
    }
    msc_arena_finish(&f.arena);
    return n_given;
}
