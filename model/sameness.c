#include "model/sameness.h"

#include "base/json.h"
#include "base/str.h"
#include "env/trial_runs.h"

#include <math.h>
#include <string.h>

// Differences up to this fraction of the greatest magnitude count as rounding.
#define SAME_PART 1e-6f
enum { MOST_RUNS = 5, MOST_NAMED = 4 };

static bool are_same(const float x[], const float y[], int64_t n) {
    float greatest = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        greatest = fabsf(x[i]) > greatest ? fabsf(x[i]) : greatest;
    }
    for (int64_t i = 0; i < n; i++) {
        bool is_same =
            memcmp(&x[i], &y[i], sizeof x[i]) == 0 || fabsf(x[i] - y[i]) <= SAME_PART * greatest;
        if (!is_same) {
            return false;
        }
    }
    return true;
}

// ---- Where values stop varying ------------------------------------------------------------------

struct walk {
    const struct msc_model *model;
    const struct msc_distill *distill;
    struct msc_arena arena;
    const struct msc_graph *g;
    int32_t *wanted; // [n_wanted] compared tensors of the graph
    size_t n_wanted;
    struct msc_array **first; // [n_wanted] values of the first run
    bool *varies;             // [n_tensors]
    bool *is_passed;          // [n_tensors] visited on the way back from the outputs
    const char *names[MOST_NAMED];
    size_t n_names;
};

// Chooses all computed float32 tensors, unless they become constants once the shapes are bound.
static enum msc_status choose_wanted(struct walk *w) {
    const struct msc_graph *bound =
        msc_evaluator_plan(msc_distill_evaluator((struct msc_distill *)w->distill), 0)->graph;
    int32_t n = msc_graph_n_tensors(w->g);
    w->wanted = msc_arena_array(&w->arena, (size_t)n + 1, sizeof w->wanted[0]);
    w->first = msc_arena_array(&w->arena, (size_t)n + 1, sizeof(w->first[0]));
    w->varies = msc_arena_array(&w->arena, (size_t)n + 1, sizeof w->varies[0]);
    w->is_passed = msc_arena_array(&w->arena, (size_t)n + 1, sizeof w->is_passed[0]);
    MSC_TRY(MSC_ALLOCATED(w->wanted && w->first && w->varies && w->is_passed));
    for (int32_t i = 0; i < n; i++) {
        const struct msc_tensor *t = msc_graph_tensor(w->g, i);
        int32_t there = msc_graph_find_tensor(bound, t->name);
        bool is_computed = t->producer != MSC_NO_ID && t->dtype == MSC_DTYPE_F32 &&
                           msc_graph_joint(w->g, t->producer)->op != MSC_OP_INPUT;
        if (is_computed && there != MSC_NO_ID && msc_graph_weight_of(bound, there) == MSC_NO_ID) {
            w->wanted[w->n_wanted++] = i;
        }
    }
    return MSC_OK;
}

static enum msc_status compare_run(void *payload, size_t trial, size_t batch,
                                   const struct msc_view values[]) {
    struct walk *w = payload;
    (void)trial;
    (void)batch;
    for (size_t i = 0; i < w->n_wanted; i++) {
        const struct msc_view *v = &values[i];
        int64_t n = msc_view_n_elements(v);
        if (!w->first[i]) {
            MSC_TRY(msc_array_create_from(&w->first[i], v->dtype, v->n_dims, v->dims, v->data));
        } else if (msc_array_n_elements(w->first[i]) != n ||
                   !are_same(msc_array_data(w->first[i]), v->data, n)) {
            w->varies[w->wanted[i]] = true;
        }
    }
    return MSC_OK;
}

// Runs the samples [first, first + n): one sample, or a sequence.
static enum msc_status run_sample(struct walk *w, int64_t first, int64_t n) {
    struct msc_evaluator_options o = MSC_EVALUATOR_OPTIONS_INIT;
    struct msc_sink sink = {.batch = compare_run, .payload = w};
    struct msc_eval_trial trial = {.edits = NULL};
    struct msc_dataset *one = NULL;
    struct msc_evaluator *ev = NULL;
    o.backend = w->model->backend;
    o.memory_bytes = w->model->memory_bytes;
    o.host_bytes = w->model->memory_bytes;
    o.cancel = w->model->cancel;
    enum msc_status status = msc_dataset_create_part(&one, w->model->dataset, first, n);
    if (status == MSC_OK) {
        status = msc_evaluator_create(&ev, w->g, one, w->wanted, w->n_wanted, &o);
    }
    if (status == MSC_OK) {
        status = msc_evaluator_run(ev, &trial, 1, &sink, 0);
        status = status == MSC_OK ? trial.status : status;
    }
    msc_evaluator_destroy(ev);
    msc_dataset_destroy(one);
    return status;
}

static enum msc_status run_samples(struct walk *w) {
    const struct msc_dataset *d = w->model->dataset;
    bool is_sequence = msc_dataset_is_sequence(d);
    int64_t n = is_sequence ? (int64_t)msc_dataset_n_batches(d) : msc_dataset_n_samples(d);
    int64_t n_runs = n < MOST_RUNS ? n : MOST_RUNS;
    for (int64_t i = 0; i < n_runs; i++) {
        int64_t at = i * n / n_runs;
        MSC_TRY(is_sequence ? run_sample(w, at * msc_dataset_batch_size(d),
                                         msc_dataset_batch_samples(d, (size_t)at))
                            : run_sample(w, at, 1));
    }
    return MSC_OK;
}

// Fills `varies` for tensors that are not in `wanted`: inputs of the network vary, and any other
// tensor varies if an input of its joint varies.
static void follow_others(struct walk *w) {
    for (size_t i = 0; i < w->n_wanted; i++) {
        w->is_passed[w->wanted[i]] = true;
    }
    for (int32_t i = 0; i < msc_graph_n_joints(w->g); i++) {
        const struct msc_joint *j = msc_graph_joint(w->g, i);
        bool varies = j->op == MSC_OP_INPUT;
        for (int32_t k = 0; k < j->n_inputs && !msc_op_has_trait(j->op, MSC_TRAIT_SHAPE); k++) {
            varies = varies || w->varies[j->inputs[k]];
        }
        for (int32_t k = 0; k < j->n_outputs; k++) {
            bool is_looked_at = w->is_passed[j->outputs[k]];
            w->varies[j->outputs[k]] = is_looked_at ? w->varies[j->outputs[k]] : varies;
        }
    }
    memset(w->is_passed, 0, (size_t)msc_graph_n_tensors(w->g) * sizeof w->is_passed[0]);
}

// Goes back from the compared tensors, through tensors that do not vary, to joints whose inputs
// vary, and names these joints' outputs.
static void name_ends(struct walk *w) {
    const struct msc_graph *g = w->g;
    for (size_t i = 0; i < msc_distill_n_compared(w->distill); i++) {
        int32_t t = msc_graph_find_tensor(g, msc_distill_compared_name(w->distill, i));
        if (t != MSC_NO_ID) {
            w->is_passed[t] = true;
        }
    }
    for (int32_t i = msc_graph_n_joints(g) - 1; i >= 0; i--) {
        const struct msc_joint *j = msc_graph_joint(g, i);
        for (int32_t o = 0; o < j->n_outputs; o++) {
            int32_t t = j->outputs[o];
            bool reads_varying = false;
            for (int32_t k = 0; w->is_passed[t] && !w->varies[t] && k < j->n_inputs; k++) {
                reads_varying = reads_varying || w->varies[j->inputs[k]];
                w->is_passed[j->inputs[k]] = true;
            }
            if (reads_varying && w->n_names < MOST_NAMED) {
                w->names[w->n_names++] = msc_tensor_label(msc_graph_tensor(g, t));
            }
        }
    }
}

// Adds names of tensors to the list; none if the network could not be run.
static enum msc_status find_ends(cJSON *list, const struct msc_model *model,
                                 const struct msc_distill *d) {
    struct walk w = {.model = model, .distill = d, .g = model->graph};
    enum msc_status status = choose_wanted(&w);
    if (status == MSC_OK) {
        status = run_samples(&w);
        if (status == MSC_OK) {
            follow_others(&w);
            name_ends(&w);
        }
        status = status == MSC_E_CANCELLED || status == MSC_E_LOST ? status : MSC_OK;
    }
    for (size_t i = 0; status == MSC_OK && i < w.n_names; i++) {
        status = msc_json_push(list, cJSON_CreateString(w.names[i]));
    }
    for (size_t i = 0; w.first && i < w.n_wanted; i++) {
        msc_array_release(w.first[i]);
    }
    msc_arena_finish(&w.arena);
    return status;
}

// ---- Samples and outputs ----------------------------------------------------------------------

// Returns true if all compared tensors are the same for all samples. If only some of them are,
// warns about these.
static bool are_outputs_same(const struct msc_distill *d, const char *name,
                             const struct msc_log *log) {
    size_t n = msc_distill_n_compared(d), n_same = 0;
    for (size_t i = 0; i < n; i++) {
        n_same += msc_distill_is_same(d, i, are_same);
    }
    for (size_t i = 0; n_same < n && i < n; i++) {
        if (msc_distill_is_same(d, i, are_same)) {
            msc_log(log, MSC_LOG_WARNING,
                    "%s: output %s is the same for all samples, so its loss does not compare plans",
                    name, msc_distill_compared_name(d, i));
        }
    }
    return n > 0 && n_same == n;
}

static enum msc_status find_dead(cJSON *found, const struct msc_model *model,
                                 const struct msc_env *env, const char *name,
                                 const struct msc_log *log) {
    const struct msc_trial_runs *r = msc_trial_runs_of(env);
    struct msc_str names = {0};
    const cJSON *item = NULL;
    if (!r || !r->distill || !are_outputs_same(r->distill, name, log)) {
        return MSC_OK;
    }
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(found, "dead", list));
    MSC_TRY(find_ends(list, model, r->distill));
    cJSON_ArrayForEach(item, list) {
        msc_str_item(&names, item->valuestring);
    }
    msc_log(log, MSC_LOG_WARNING,
            "%s: the outputs are the same for all samples%s%s, so losses cannot tell plans apart; "
            "check that the samples are prepared as the model expects",
            name, names.length > 0 ? " and nothing varies after " : "", msc_str_text(&names));
    msc_str_finish(&names);
    return MSC_OK;
}

static enum msc_status fill_sameness(cJSON *found, const struct msc_model *model,
                                     const struct msc_env *env, const char *name,
                                     const struct msc_log *log) {
    if (model->n_shared > 0 && !model->validation) {
        MSC_TRY(msc_json_add_number(found, "unshared", 0));
    }
    if (!msc_dataset_is_constant(model->dataset)) {
        return msc_dataset_n_samples(model->dataset) > 1 ? find_dead(found, model, env, name, log)
                                                         : MSC_OK;
    }
    msc_log(log, MSC_LOG_WARNING,
            "%s: all samples are the same, so losses say nothing about other samples; check that "
            "they are read and prepared correctly",
            name);
    return msc_json_add_bool(found, "same", true);
}

enum msc_status msc_sameness_find(cJSON **out, const struct msc_model *model,
                                  const struct msc_env *env, const char *name,
                                  const struct msc_log *log) {
    cJSON *found = cJSON_CreateObject();
    *out = NULL;
    if (!model->dataset) {
        cJSON_Delete(found);
        return MSC_OK;
    }
    enum msc_status status = found ? fill_sameness(found, model, env, name, log)
                                   : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK || !found->child) {
        cJSON_Delete(found);
        return status;
    }
    *out = found;
    return MSC_OK;
}
