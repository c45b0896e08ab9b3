// Plans from outside. The first byte says what follows. 't': a strategy file, which is read,
// applied to a small network, written and read again. 'm': an agent program's answer to a request.
// 'e': an environment program's space, a NUL, and the program's line about a trial.
#include "agents/process_messages.h"
#include "base/alloc.h"
#include "env/process_messages.h"
#include "graph/onnx/onnx.h"
#include "tests/fuzz/fuzz.h"
#include "tools/strategy.h"

#include <math.h>
#include <string.h>

// ---- Strategies -------------------------------------------------------------------------------

// A convolution of "x" with "w" [4, 3, 3, 3], then a linear layer with "m" [5, 6].
static enum msc_status make_graph(struct msc_graph *g) {
    static const int64_t x_dims[] = {1, 3, 8, 8}, w_dims[] = {4, 3, 3, 3}, m_dims[] = {5, 6};
    struct msc_array *w = NULL, *m = NULL;
    int32_t x, y, id, joint;
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_array_create(&w, MSC_DTYPE_F32, 4, w_dims));
    MSC_TRY_OUT(msc_array_create(&m, MSC_DTYPE_F32, 2, m_dims));
    MSC_TRY_OUT(msc_graph_add_input(&x, g, "x", "x", MSC_DTYPE_F32, "NCHW", 4, x_dims));
    MSC_TRY_OUT(msc_graph_add_weight(&id, g, "w", NULL, "OIHW", w));
    struct msc_joint_spec conv = {.op = MSC_OP_CONV2D,
                                  .name = "conv",
                                  .n_inputs = 1,
                                  .inputs = &x,
                                  .n_weights = 1,
                                  .weights = &(struct msc_weight_spec){"weight", id}};
    MSC_TRY_OUT(msc_graph_add_joint(&joint, g, &conv));
    y = msc_graph_joint(g, joint)->outputs[0];
    MSC_TRY_OUT(msc_graph_add_weight(&id, g, "m", NULL, "OI", m));
    struct msc_joint_spec linear = {.op = MSC_OP_LINEAR,
                                    .name = "linear",
                                    .n_inputs = 1,
                                    .inputs = &y,
                                    .n_weights = 1,
                                    .weights = &(struct msc_weight_spec){"weight", id}};
    MSC_TRY_OUT(msc_graph_add_joint(&joint, g, &linear));
    y = msc_graph_joint(g, joint)->outputs[0];
    MSC_TRY_OUT(msc_graph_set_outputs(g, 1, &y));
    status = msc_graph_finalize(g);
out:
    msc_array_release(w);
    msc_array_release(m);
    return status;
}

// Applies the edits to the weights and exports the model.
static void use_edits(const struct msc_graph *g, const struct msc_sites *sites,
                      const struct msc_edit *const edits[]) {
    const struct msc_onnx_export_options options = {.sites = sites, .slot_edits = edits};
    uint64_t n_bytes;
    for (int32_t i = 0; i < sites->n_slots; i++) {
        const struct msc_tensor *t = msc_graph_tensor(g, sites->slots[i].tensor);
        struct msc_array *out = NULL;
        if (edits[i] && t->data) {
            fuzz_check(msc_edit_apply(&out, t->data, edits[i]));
        }
        msc_array_release(out);
    }
    fuzz_check(msc_onnx_measure(&n_bytes, g, &options));
}

static void apply(const struct msc_strategy *s, const struct msc_graph *g) {
    struct msc_sites sites = {0};
    const struct msc_edit **edits = NULL;
    if (fuzz_check(msc_sites_find(&sites, g, NULL)) == MSC_OK) {
        edits = msc_alloc_zero((size_t)sites.n_slots, sizeof *edits);
    }
    if (edits && fuzz_check(msc_strategy_apply(s, g, &sites, edits)) == MSC_OK) {
        use_edits(g, &sites, edits);
    }
    msc_free(edits);
    msc_sites_finish(&sites);
}

static void read_strategy(const struct msc_graph *g) {
    struct msc_strategy *s = NULL, *again = NULL;
    if (fuzz_check(msc_strategy_load(&s, fuzz_path("s.json"))) != MSC_OK) {
        return;
    }
    apply(s, g);
    if (fuzz_check(msc_strategy_save(s, g, fuzz_path("saved.json"))) == MSC_OK) {
        if (fuzz_check(msc_strategy_load(&again, fuzz_path("saved.json"))) != MSC_OK) {
            fuzz_fail("a strategy of our own is refused");
        }
        if (!msc_hash_equal(msc_strategy_hash(s), msc_strategy_hash(again))) {
            fuzz_fail("a strategy reads as another one than was saved");
        }
        fuzz_check(msc_strategy_merge(s, again));
    }
    msc_strategy_destroy(s);
    msc_strategy_destroy(again);
}

static void fuzz_strategy(const uint8_t *data, size_t n_bytes) {
    struct msc_graph *g = NULL;
    fuzz_write("s.json", data, n_bytes);
    if (msc_graph_create(&g, "main") != MSC_OK || make_graph(g) != MSC_OK) {
        fuzz_fail(msc_status_message());
    }
    read_strategy(g);
    msc_graph_destroy(g);
}

// ---- Answers ----------------------------------------------------------------------------------

enum { MAX_PROPOSALS = 3 };

static void fuzz_answer(const uint8_t *data, size_t n_bytes) {
    static const char *const labels[] = {"8", "6", "4"};
    static const struct msc_task tasks[] = {{.name = "a", .n_choices = 3, .labels = labels},
                                            {.name = "b", .n_choices = 2, .labels = labels}};
    static const struct msc_space space = {.n_tasks = 2, .tasks = tasks};
    uint32_t choices[MAX_PROPOSALS][2] = {{0}};
    struct msc_proposal proposals[MAX_PROPOSALS];
    size_t n = 0;
    bool is_done = false;
    cJSON *answer = NULL;
    for (int i = 0; i < MAX_PROPOSALS; i++) {
        proposals[i] =
            (struct msc_proposal){.choices = choices[i], .parent = -1, .bound = INFINITY};
    }
    if (fuzz_check(msc_json_parse(&answer, (const char *)data, n_bytes, "answer")) == MSC_OK) {
        fuzz_check(
            msc_process_read_proposals(answer, &space, proposals, MAX_PROPOSALS, &n, &is_done));
    }
    for (size_t i = 0; i < n; i++) {
        if (choices[i][0] >= 3 || choices[i][1] >= 2) {
            fuzz_fail("a choice that the task does not have");
        }
    }
    cJSON_Delete(answer);
}

// Reads `text` as the outcome of one of two trials. Both trials have the first choice of every
// task; the second has its outcome already.
static void read_outcome(const char *text, size_t n_bytes, const struct msc_space *space) {
    static const size_t places[] = {0, 1};
    static const bool is_done[] = {false, true};
    struct msc_arena arena = {0};
    struct msc_trial trials[2], *list[] = {&trials[0], &trials[1]};
    const struct msc_evaluation e = {.trials = list, .n = 2};
    size_t index = 0;
    cJSON *answer = NULL;
    if (fuzz_check(msc_trial_init(&trials[0], &arena, space)) == MSC_OK &&
        fuzz_check(msc_trial_init(&trials[1], &arena, space)) == MSC_OK &&
        fuzz_check(msc_json_parse(&answer, text, n_bytes, "answer")) == MSC_OK) {
        msc_trial_begin(&trials[0], space);
        msc_trial_begin(&trials[1], space);
        if (fuzz_check(msc_process_read_outcome(&index, answer, space, &e, places, is_done, 2)) ==
                MSC_OK &&
            index != 0) {
            fuzz_fail("an outcome of a trial that has one");
        }
    }
    cJSON_Delete(answer);
    msc_arena_finish(&arena);
}

static void fuzz_environment(const uint8_t *data, size_t n_bytes) {
    struct msc_arena arena = {0};
    struct msc_process_env says = {.version = 0};
    const uint8_t *end = n_bytes > 0 ? memchr(data, 0, n_bytes) : NULL;
    size_t n_space = end ? (size_t)(end - data) : n_bytes;
    cJSON *answer = NULL;
    if (fuzz_check(msc_json_parse(&answer, (const char *)data, n_space, "answer")) == MSC_OK &&
        cJSON_IsObject(answer) &&
        fuzz_check(msc_process_read_space(&says, answer, &arena)) == MSC_OK &&
        fuzz_check(msc_space_check(&says.space)) == MSC_OK && end) {
        read_outcome((const char *)end + 1, n_bytes - n_space - 1, &says.space);
    }
    cJSON_Delete(answer);
    msc_arena_finish(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const files[] = {"s.json", "saved.json", NULL};
    if (n_bytes < 1 || n_bytes > FUZZ_MAX_BYTES || !strchr("tme", data[0]) || !data[0]) {
        return -1;
    }
    if (data[0] == 't') {
        fuzz_strategy(data + 1, n_bytes - 1);
    } else if (data[0] == 'e') {
        fuzz_environment(data + 1, n_bytes - 1);
    } else {
        fuzz_answer(data + 1, n_bytes - 1);
    }
    fuzz_check_files(files);
    return 0;
}
