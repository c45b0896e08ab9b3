// Writes rows of the table of kernel cases for ONNX Runtime, for tests/long/check_kernels.py.
//
//     kernel_tool FOLDER           writes all rows without the reader `not_ort`
//     kernel_tool FOLDER --time N  writes row N and measures it on one thread
//
// For each row, FOLDER/N.onnx is the model, FOLDER/N.x0.npy, ... are its random inputs, and
// FOLDER/N.y0.npy, ... are the outputs of the backend `cpu`. Each row prints a JSON line: "row",
// "name", "op", "attributes", "operands", "bound", "is_measured" and, if measured, "us", the median
// processor time of a run.
#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "data/npy.h"
#include "graph/onnx/onnx.h"
#include "kernels/engine/backends.h"
#include "kernels/engine/evaluator.h"

#include "tests/kernels/kernel_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_OUTPUTS = 3, MAX_RUNS = 1000 };

struct run {
    const struct kernel_case *row;
    const char *folder;
    struct kernel_builder builder;
    struct msc_rng rng;
    int32_t outputs[MAX_OUTPUTS];
    size_t n_outputs;
    struct msc_dataset *data;
    struct msc_evaluator *ev;
    double us; // 0: not measured
};

// Writes the path "FOLDER/N.SUFFIX".
static void set_path(char path[512], const struct run *r, const char *suffix) {
    snprintf(path, 512, "%s/%zu.%s", r->folder, (size_t)(r->row - kernel_cases), suffix);
}

static enum msc_status save_array(const struct run *r, char kind, int i,
                                  const struct msc_array *a) {
    char path[512], suffix[16];
    snprintf(suffix, sizeof(suffix), "%c%d.npy", kind, i);
    set_path(path, r, suffix);
    return msc_npy_save(path, a);
}

static enum msc_status save_outputs(void *payload, size_t trial, size_t batch,
                                    const struct msc_view values[]) {
    const struct run *r = payload;
    (void)trial;
    (void)batch;
    for (size_t i = 0; i < r->n_outputs; i++) {
        struct msc_array *a;
        const struct msc_view *v = &values[i];
        MSC_TRY(msc_array_create_from(&a, v->dtype, v->n_dims, v->dims, v->data));
        enum msc_status status = save_array(r, 'y', (int)i, a);
        msc_array_release(a);
        MSC_TRY(status);
    }
    return MSC_OK;
}

static void fill(void *payload, const struct kernel_operand *o, float x[], int64_t n) {
    struct run *r = payload;
    float low = o->has_range ? o->low : -2.0f, high = o->has_range ? o->high : 2.0f;
    for (int64_t i = 0; i < n; i++) {
        x[i] = low + (high - low) * (float)msc_rng_double(&r->rng);
    }
}

static enum msc_status build(struct run *r) {
    int32_t id;
    char path[512];
    struct msc_graph *g;
    msc_rng_seed(&r->rng, 1, 0);
    MSC_TRY(msc_graph_create(&r->builder.graph, "case"));
    g = r->builder.graph;
    r->builder.fill = fill;
    r->builder.payload = r;
    r->builder.has_no_pools = true;
    MSC_TRY(kernel_case_build(&id, &r->builder, r->row));
    const struct msc_joint *joint = msc_graph_joint(g, id);
    MSC_TRY(msc_graph_set_outputs(g, joint->n_outputs, joint->outputs));
    MSC_TRY(msc_graph_finalize(g));
    set_path(path, r, "onnx");
    return msc_onnx_save(g, path, NULL);
}

static enum msc_status prepare(struct run *r, struct msc_backend *backend) {
    struct msc_input_spec specs[KERNEL_MAX_OPERANDS] = {{0}};
    struct msc_evaluator_options options = MSC_EVALUATOR_OPTIONS_INIT;
    MSC_TRY(build(r));
    struct msc_graph *g = r->builder.graph;
    for (int i = 0; i < r->builder.n_inputs; i++) {
        const struct msc_array *x = r->builder.inputs[i];
        specs[i].name = msc_graph_tensor(g, msc_graph_input(g, i))->alias;
        specs[i].dtype = MSC_DTYPE_F32;
        specs[i].n_dims = msc_array_n_dims(x);
        memcpy(specs[i].dims, msc_array_dims(x), (size_t)specs[i].n_dims * sizeof(int64_t));
        MSC_TRY(save_array(r, 'x', i, x));
    }
    MSC_TRY(msc_dataset_create_whole(&r->data, specs,
                                     (const struct msc_array *const *)r->builder.inputs,
                                     (size_t)r->builder.n_inputs));
    for (int32_t i = 0; i < msc_graph_n_outputs(g); i++) {
        r->outputs[r->n_outputs++] = msc_graph_output(g, i);
    }
    options.backend = backend;
    return msc_evaluator_create(&r->ev, g, r->data, r->outputs, r->n_outputs, &options);
}

static enum msc_status evaluate(struct run *r, const struct msc_sink *sink, unsigned flags) {
    static const struct msc_edit *const no_edits[KERNEL_MAX_OPERANDS + MAX_OUTPUTS];
    struct msc_eval_trial trial = {.edits = no_edits};
    MSC_TRY(msc_evaluator_run(r->ev, &trial, 1, sink, flags));
    return trial.status == MSC_OK ? MSC_OK : msc_status_restore(trial.status, trial.message);
}

static enum msc_status ignore_outputs(void *payload, size_t trial, size_t batch,
                                      const struct msc_view values[]) {
    (void)payload;
    (void)trial;
    (void)batch;
    (void)values;
    return MSC_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Processor time, so that other programs do not count; only one thread computes.
static double process_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Measures the median time of a run, over a fifth of a second or MAX_RUNS runs.
static enum msc_status measure(struct run *r) {
    static double us[MAX_RUNS];
    const struct msc_sink sink = {.batch = ignore_outputs};
    double end = process_seconds() + 0.2;
    int n = 0;
    while (n < MAX_RUNS && (n == 0 || process_seconds() < end)) {
        double start = process_seconds();
        MSC_TRY(evaluate(r, &sink, MSC_EVAL_FRESH));
        us[n++] = (process_seconds() - start) * 1e6;
    }
    qsort(us, (size_t)n, sizeof(us[0]), compare_doubles);
    r->us = us[n / 2];
    return MSC_OK;
}

static enum msc_status add_members(cJSON *line, const struct run *r) {
    const struct kernel_case *k = r->row;
    MSC_TRY(msc_json_add_number(line, "row", (double)(k - kernel_cases)));
    MSC_TRY(msc_json_add_text(line, "name", k->name));
    MSC_TRY(msc_json_add_text(line, "op", msc_op_info(k->op)->name));
    MSC_TRY(msc_json_add_text(line, "attributes", k->attributes));
    MSC_TRY(msc_json_add_text(line, "operands", k->operands));
    MSC_TRY(msc_json_add_number(line, "bound", k->bound));
    MSC_TRY(msc_json_add_bool(line, "is_measured", kernel_case_has_reader(k, "bench")));
    return r->us > 0 ? msc_json_add_number(line, "us", r->us) : MSC_OK;
}

static enum msc_status print_line(const struct run *r) {
    struct msc_str text = {0};
    cJSON *line = cJSON_CreateObject();
    enum msc_status status = add_members(line, r);
    msc_json_write(&text, line);
    if (status == MSC_OK) {
        status = msc_str_status(&text);
    }
    if (status == MSC_OK) {
        puts(text.data);
    }
    msc_str_finish(&text);
    cJSON_Delete(line);
    return status;
}

static enum msc_status run_row(const struct kernel_case *row, const char *folder,
                               struct msc_backend *backend, bool is_timed) {
    struct run r = {.row = row, .folder = folder};
    const struct msc_sink sink = {.batch = save_outputs, .payload = &r};
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(prepare(&r, backend));
    MSC_TRY_OUT(evaluate(&r, &sink, 0));
    if (is_timed) {
        MSC_TRY_OUT(measure(&r));
    }
    MSC_TRY_OUT(print_line(&r));
out:
    msc_evaluator_destroy(r.ev);
    msc_dataset_destroy(r.data);
    for (int i = 0; i < r.builder.n_inputs; i++) {
        msc_array_release(r.builder.inputs[i]);
    }
    msc_graph_destroy(r.builder.graph);
    return status == MSC_OK ? MSC_OK
                            : msc_status_prefix(status, "row %zu, %s", (size_t)(row - kernel_cases),
                                                row->operands);
}

static enum msc_status run_rows(const char *folder, const char *only) {
    struct msc_backend_options options = MSC_BACKEND_OPTIONS_INIT;
    struct msc_backend *backend;
    size_t chosen = only ? strtoul(only, NULL, 10) : 0;
    enum msc_status status = MSC_OK;
    if (chosen >= kernel_n_cases) {
        return MSC_FAIL(MSC_E_INVALID, "row %s does not exist: the table has %zu rows", only,
                        kernel_n_cases);
    }
    MSC_TRY(msc_file_make_folders(folder));
    MSC_TRY(msc_backend_open(&backend, "cpu", &options));
    if (only) {
        status = run_row(&kernel_cases[chosen], folder, backend, true);
    }
    for (size_t i = 0; !only && status == MSC_OK && i < kernel_n_cases; i++) {
        if (!kernel_case_has_reader(&kernel_cases[i], "not_ort")) {
            status = run_row(&kernel_cases[i], folder, backend, false);
        }
    }
    msc_backend_close(backend);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 2 && !(argc == 4 && strcmp(argv[2], "--time") == 0)) {
        fprintf(stderr, "usage: kernel_tool FOLDER [--time ROW]\n");
        return 2;
    }
    if (run_rows(argv[1], argc == 4 ? argv[3] : NULL) != MSC_OK) {
        fprintf(stderr, "kernel_tool: %s\n", msc_status_message());
        return 1;
    }
    return 0;
}
