#include "pipeline/first_config.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "graph/target.h"
#include "pipeline/session.h"
#include "tools/runtime.h"

#include <math.h>
#include <string.h>

// What is searched: as JSON, in the order of the environment's uniform plans, and as commented YAML.
struct proposal {
    const char *choices, *rules, *text;
    size_t n_uniform; // uniform plans without float: the first has 8 bits, the last 4
};

static const struct proposal few_bits = {
    .choices = "[{\"bits\":8},{\"bits\":6,\"rounding\":\"descent\",\"correct\":\"affine\"},"
               "{\"bits\":4,\"rounding\":\"descent\",\"correct\":\"affine\"}]",
    .rules = "[{\"kind\":\"activation\",\"choices\":[\"8\"]}]",
    .text =
        "        # Weights of few bits are rounded by their effect on the outputs, and corrected\n"
        "        # afterwards. Other choices are, for example, {float: true}, {bits: 5} and\n"
        "        # {bits: 4, group_size: 32}.\n"
        "        choices:\n"
        "          - {bits: 8}\n"
        "          - {bits: 6, rounding: descent, correct: affine}\n"
        "          - {bits: 4, rounding: descent, correct: affine}\n"
        "        # Activations have 8 bits: runtimes compute with these.\n"
        "        rules:\n"
        "          - {kind: activation, choices: [\"8\"]}\n",
    .n_uniform = 3};

// For a target whose integers all have 8 bits.
static const struct proposal bytes = {.choices = "[{\"bits\":8},{\"float\":true}]",
                                      .rules = "[]",
                                      .text = "        # The target takes 8 bits or float.\n"
                                              "        choices:\n"
                                              "          - {bits: 8}\n"
                                              "          - {float: true}\n",
                                      .n_uniform = 1};

#define HELD_BACK 0.2
// The size must fall at least to this share of the size with 8 bits for a bound to be of use.
#define WORTHWHILE 0.95
// Share of what 8 bits save that may stay float, for a target whose integers all have 8 bits.
#define LEFT_FLOAT 0.1

struct first {
    struct msc_arena arena;
    const struct msc_first_config_options *options;
    struct msc_setup *setup;
    struct msc_session session;
    const struct proposal *proposal;
    double size_8, size_4, bound; // size_ratio with one choice everywhere; the bound, or NaN
    const char *folder;           // of the output
    const char *runtime, *version, *missing; // in the arena; NULL: none
};

// ---- Looking at the model ---------------------------------------------------------------------

static enum msc_status check_output(const char *path) {
    if (!msc_path_ends_in(path, ".yaml") && !msc_path_ends_in(path, ".yml")) {
        return MSC_FAIL(MSC_E_INVALID,
                        "init: --output is \"%s\": expected a name that ends in .yaml, as JSON has "
                        "no comments",
                        path);
    }
    return msc_file_exists(path)
               ? MSC_FAIL(MSC_E_INVALID, "init: %s exists: name another file with -o, or remove it",
                          path)
               : MSC_OK;
}

static const struct proposal *choose_proposal(const struct msc_first_config_options *o) {
    const struct msc_target *target = o->target ? msc_target_find(o->target) : NULL;
    return target && target->min_bits == 8 ? &bytes : &few_bits;
}

static enum msc_status add_search(cJSON *config, const struct first *f) {
    const char *target = f->options->target;
    cJSON *section = cJSON_CreateObject(), *gym, *entry, *env;
    MSC_TRY(msc_json_add(config, "quantize", section));
    MSC_TRY(target ? msc_json_add_text(section, "target", target) : MSC_OK);
    MSC_TRY(msc_json_add(section, "gym", gym = cJSON_CreateArray()));
    MSC_TRY(msc_json_push(gym, entry = cJSON_CreateObject()));
    MSC_TRY(msc_json_add(entry, "env", env = cJSON_CreateObject()));
    MSC_TRY(msc_json_add(env, "rules", cJSON_Parse(f->proposal->rules)));
    return msc_json_add(env, "choices", cJSON_Parse(f->proposal->choices));
}

static enum msc_status fill_config(cJSON *config, const struct first *f) {
    const struct msc_first_config_options *o = f->options;
    cJSON *dataset = cJSON_CreateObject();
    MSC_TRY(msc_json_add(config, "dataset", dataset));
    MSC_TRY(msc_json_add_text(dataset, "inputs", o->inputs));
    MSC_TRY(o->labels ? msc_json_add_text(dataset, "labels", o->labels) : MSC_OK);
    MSC_TRY(msc_json_add_number(dataset, "validation", HELD_BACK));
    MSC_TRY(msc_json_add_text(config, "model", o->model));
    MSC_TRY(msc_json_add_text(config, "verbose", "warning"));
    return add_search(config, f);
}

static enum msc_status open_session(struct first *f) {
    struct msc_config *config = NULL;
    struct msc_processor_options host = f->options->host;
    cJSON *json = cJSON_CreateObject();
    enum msc_status status = json ? fill_config(json, f) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(json);
        return status;
    }
    MSC_TRY(msc_config_create(&config, json, "init", ".", MSC_CONFIG_CODE_ALLOWED));
    host.is_dry_run = true; // together with `restart`: ignores any existing record
    host.restart = true;
    MSC_TRY(msc_setup_create(&f->setup, config, &host));
    MSC_TRY(msc_setup_load(f->setup, MSC_SETUP_LOOK));
    MSC_TRY(msc_session_open(&f->session, f->setup, f->setup->first, MSC_SETUP_LOOK));
    return msc_session_look_at_samples(&f->session);
}

// Rounds up to two digits, so that the bound stays above the size that it is derived from.
static double round_up(double x) {
    return ceil(x * 100 - 1e-9) / 100;
}

static enum msc_status find_bound(struct first *f) {
    const struct msc_space *space = msc_env_space(f->session.env);
    const struct msc_cost *cost = msc_space_find_cost(space, "size_ratio");
    const struct proposal *p = f->proposal;
    if (!cost || space->n_baselines < p->n_uniform) {
        return MSC_FAIL(MSC_E_INVALID, "init: %s has no tensor that the target can quantise",
                        f->options->model);
    }
    f->size_8 = msc_cost_value(cost, space->baselines[0].choices);
    if (p == &bytes) {
        f->bound = round_up(f->size_8 + LEFT_FLOAT * (1 - f->size_8));
        return MSC_OK;
    }
    f->size_4 = msc_cost_value(cost, space->baselines[p->n_uniform - 1].choices);
    f->bound = f->size_4 <= WORTHWHILE * f->size_8 ? round_up((f->size_8 + f->size_4) / 2) : NAN;
    return MSC_OK;
}

static enum msc_status keep_text(struct first *f, const char **out, const char *text) {
    *out = text ? msc_arena_strdup(&f->arena, text) : NULL;
    return MSC_ALLOCATED(!text || *out);
}

// A missing runtime is not an error: its absence is written as a comment.
static enum msc_status find_runtime(struct first *f) {
    const struct msc_target *target = msc_target_find(f->session.entry->target);
    struct msc_runtime_options o = MSC_RUNTIME_OPTIONS_INIT;
    const struct msc_runtime_found *found = NULL;
    struct msc_runtime *runtime = NULL;
    if (!target || !target->runtime) {
        return MSC_OK;
    }
    f->runtime = target->runtime;
    o.cancel = f->options->host.cancel;
    enum msc_status status = msc_runtime_start(&runtime, &o);
    status = status == MSC_OK ? msc_runtime_find(&found, runtime, target->runtime) : status;
    status = keep_text(f, status == MSC_OK ? &f->version : &f->missing,
                       status == MSC_OK ? found->version : msc_status_message());
    msc_runtime_stop(runtime);
    return status;
}

// ---- Writing ----------------------------------------------------------------------------------

// Whether YAML reads the path as it stands, without quotes.
static bool is_plain(const char *path) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char usual[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    return path[0] != '-' && strchr(path, '.') && strpbrk(path, letters) &&
           strspn(path, usual) == strlen(path);
}

// Appends `KEY: PATH`. A relative path becomes relative to the folder of the output.
static enum msc_status write_path(struct msc_str *out, struct first *f, const char *key,
                                  const char *path) {
    char *relative = NULL;
    if (path[0] != '/') {
        MSC_TRY(msc_path_relative(&relative, &f->arena, path, f->folder));
        path = relative;
    }
    msc_str_append(out, key);
    if (is_plain(path)) {
        msc_str_append(out, path);
    } else {
        msc_json_write_text(out, path); // text in JSON is text in YAML
    }
    msc_str_char(out, '\n');
    return MSC_OK;
}

static enum msc_status write_dataset(struct msc_str *out, struct first *f) {
    const struct msc_model *m = f->setup->model;
    MSC_TRY(write_path(out, f, "model: ", f->options->model));
    msc_str_append(out, "\ndataset:\n");
    MSC_TRY(write_path(out, f, "  inputs: ", f->options->inputs));
    if (f->options->labels) {
        MSC_TRY(write_path(out, f, "  labels: ", f->options->labels));
    } else {
        msc_str_append(out, "  # With the class of each sample, the accuracy is measured, too:\n"
                            "  # labels: labels.npy\n");
    }
    size_t n = msc_dataset_n_samples(m->dataset);
    size_t n_held = m->validation ? msc_dataset_n_samples(m->validation) : 0;
    msc_str_printf(out,
                   "  # The search sees %zu samples. The last %zu judge its winner.\n"
                   "  validation: %g\n",
                   n, n_held, HELD_BACK);
    return MSC_OK;
}

static void write_target(struct msc_str *out, const struct first *f) {
    msc_str_append(out, "\nquantize:\n");
    if (f->version) {
        msc_str_printf(out,
                       "  # The runtime that the model is for. %s %s is installed, so the winner\n"
                       "  # is also measured there.\n",
                       f->runtime, f->version);
    } else if (f->runtime) {
        msc_str_printf(out,
                       "  # The runtime that the model is for. If %s is installed, the winner is\n"
                       "  # also measured there. It was not found.\n",
                       f->runtime);
    } else {
        msc_str_append(out, "  # The runtime that the model is for.\n");
    }
    msc_str_printf(out, "  target: %s\n", f->session.entry->target);
}

static void write_bounds(struct msc_str *out, const struct first *f) {
    msc_str_append(out,
                   "        # What a plan must keep; mscgym envs quantize lists the metrics.\n");
    if (isnan(f->bound)) {
        msc_str_printf(out,
                       "        # The size hardly depends on the bits (size_ratio %.3g with 8 and "
                       "%.3g with 4),\n"
                       "        # so it is not bounded.\n",
                       f->size_8, f->size_4);
    } else {
        msc_str_printf(out,
                       "        # The size relative to the float model is %.3g with 8 bits "
                       "everywhere",
                       f->size_8);
        if (f->proposal != &bytes) {
            msc_str_printf(out, " and\n        # %.3g with 4", f->size_4);
        }
        msc_str_printf(out, ".\n        bounds:\n          size_ratio: {max: %g}\n", f->bound);
    }
    msc_str_append(out, f->options->labels
                            ? "        # The smallest model that loses at most one point of "
                              "accuracy, in place of this:\n"
                              "        # objectives: [size_bytes]\n"
                              "        # bounds: {accuracy_drop: 0.01}\n"
                            : "");
}

static void write_search(struct msc_str *out, const struct first *f) {
    msc_str_printf(out,
                   "  gym:\n    - env:\n        # What may become of each of the %zu tensors.\n%s",
                   msc_env_space(f->session.env)->n_tasks, f->proposal->text);
    write_bounds(out, f);
    msc_str_printf(out,
                   "      # The agent proposes the plans; mscgym agents lists others.\n"
                   "      agent: {type: auto}\n"
                   "      # The search may be stopped and continued at any time.\n"
                   "      budget: {time: %s}\n"
                   "      # At the end, fits the winner's weights to the outputs of the float "
                   "model.\n"
                   "      distill: true\n",
                   f->options->time);
}

static enum msc_status write_config(struct msc_str *out, struct first *f) {
    msc_str_append(out, "# A search for mscgym. mscgym config lists all keys with their defaults. "
                        "Paths start\n# from the folder of this file.\n\n");
    MSC_TRY(write_dataset(out, f));
    write_target(out, f);
    write_search(out, f);
    return msc_str_status(out);
}

// ---- The report -------------------------------------------------------------------------------

static enum msc_status add_runtime(cJSON *found, const struct first *f) {
    cJSON *runtime = cJSON_CreateObject();
    MSC_TRY(msc_json_add(found, "runtime", runtime));
    MSC_TRY(msc_json_add_text(runtime, "name", f->runtime));
    return f->version ? msc_json_add_text(runtime, "version", f->version)
                      : msc_json_add_text(runtime, "missing", f->missing ? f->missing : "");
}

static enum msc_status report(cJSON *found, const struct first *f) {
    const struct msc_model *m = f->setup->model;
    cJSON *size = cJSON_CreateObject();
    MSC_TRY(msc_json_add(found, "size_ratio", size));
    MSC_TRY(msc_json_add_number(size, "8", f->size_8));
    MSC_TRY(f->proposal == &bytes ? MSC_OK : msc_json_add_number(size, "4", f->size_4));
    MSC_TRY(isnan(f->bound) ? MSC_OK : msc_json_add_number(size, "bound", f->bound));
    MSC_TRY(msc_json_add_text(found, "config", f->options->output));
    MSC_TRY(msc_json_add_number(found, "tasks", (double)msc_env_space(f->session.env)->n_tasks));
    size_t n_held = m->validation ? msc_dataset_n_samples(m->validation) : 0;
    MSC_TRY(msc_json_add_number(found, "samples",
                                (double)(msc_dataset_n_samples(m->dataset) + n_held)));
    return f->runtime ? add_runtime(found, f) : MSC_OK;
}

static enum msc_status run(cJSON *found, struct first *f) {
    struct msc_str text = {0};
    double seconds;
    MSC_TRY(check_output(f->options->output));
    if (!msc_parse_duration(&seconds, f->options->time) || !(seconds > 0)) {
        return MSC_FAIL(MSC_E_INVALID, "init: --time is \"%s\", expected a time such as 8h or 90m",
                        f->options->time);
    }
    f->folder = msc_path_folder(&f->arena, f->options->output);
    MSC_TRY(MSC_ALLOCATED(f->folder));
    MSC_TRY(open_session(f));
    MSC_TRY(find_bound(f));
    MSC_TRY(find_runtime(f));
    MSC_TRY(report(found, f));
    enum msc_status status = write_config(&text, f);
    if (status == MSC_OK) {
        status = msc_file_write(f->options->output, text.data, text.length);
    }
    msc_str_finish(&text);
    return status;
}

enum msc_status msc_first_config(struct cJSON **out,
                                 const struct msc_first_config_options *options) {
    struct first f = {.options = options, .proposal = choose_proposal(options)};
    cJSON *found = cJSON_CreateObject();
    enum msc_status status = found ? run(found, &f) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    msc_session_close(&f.session);
    msc_setup_destroy(f.setup);
    msc_arena_finish(&f.arena);
    if (status != MSC_OK) {
        cJSON_Delete(found);
        return status;
    }
    *out = found;
    return MSC_OK;
}
