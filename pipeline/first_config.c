#include "pipeline/first_config.h"

#include "base/file.h"
#include "base/json.h"
#include "graph/target.h"
#include "pipeline/notation.h"
#include "pipeline/session.h"
#include "tools/runtime.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// What is searched.
struct proposal {
    const char *choices, *rules; // JSON; the choices in the order of the environment's plans
    const char *comment;
    size_t n_uniform; // uniform plans before those of other kinds: the first has 8 bits, the last 4
};

#define FEW_BITS                                                                                   \
    "{\"bits\":8},{\"bits\":6,\"rounding\":\"descent\",\"correct\":\"affine\"},"                   \
    "{\"bits\":4,\"rounding\":\"descent\",\"correct\":\"affine\"}"
#define OF_WEIGHTS                                                                                 \
    "{\"kind\":\"weight\",\"choices\":[\"8\",\"6 descent affine\",\"4 descent affine\"]}"
#define ABOUT_WEIGHTS                                                                              \
    "Weights of few bits are rounded by their effect on the outputs, and corrected\n"              \
    "afterwards. Other choices are, for example, 5 bits, or 4 with group_size 32.\n"

static const struct proposal few_bits = {.choices = "[" FEW_BITS "]",
                                         .rules = "[{\"kind\":\"activation\",\"choices\":[\"8\"]}]",
                                         .comment = ABOUT_WEIGHTS "Activations have 8 bits.\n",
                                         .n_uniform = 3};

// For runtimes on processors, which run float next to integers.
static const struct proposal mixed = {
    .choices = "[" FEW_BITS ",{\"float\":true}]",
    .rules = "[" OF_WEIGHTS ",{\"kind\":\"activation\",\"choices\":[\"8\",\"float\"]}]",
    .comment = ABOUT_WEIGHTS "Activations have 8 bits; those that do most harm may stay float.\n",
    .n_uniform = 3};

// Likewise, if they find scales as they run.
static const struct proposal dynamic = {
    .choices = "[" FEW_BITS ",{\"bits\":8,\"dynamic\":true},{\"float\":true}]",
    .rules = "[" OF_WEIGHTS ",{\"kind\":\"activation\","
             "\"choices\":[\"8\",\"8 dynamic\",\"float\"]}]",
    .comment = ABOUT_WEIGHTS "Activations have 8 bits. Before linear layers, their scale may be\n"
                             "dynamic: found anew in each run. Those that do most harm may stay "
                             "float.\n",
    .n_uniform = 3};

// For a target whose integers all have 8 bits.
static const struct proposal bytes = {.choices = "[{\"bits\":8},{\"float\":true}]",
                                      .rules = "[]",
                                      .comment = "The target takes 8 bits or float.\n",
                                      .n_uniform = 1};

#define HELD_BACK 0.2
// The size must fall at least to this share of the size with 8 bits for a bound to be of use.
#define WORTHWHILE 0.95
// Share of what 8 bits save that may stay float, for a target whose integers all have 8 bits.
#define LEFT_FLOAT 0.1
// By this factor, float activations may add to the bit operations of 8 bits everywhere.
#define MORE_BIT_OPS 1.25

struct first {
    struct msc_arena arena;
    const struct msc_first_config_options *options;
    struct msc_setup *setup;
    struct msc_session session;
    const struct proposal *proposal;
    double size_8, size_4, bound; // size_ratio with one choice everywhere; the bound, or NaN
    double bit_ops;               // bound of bit_ops_ratio; NaN: none
    const char *folder;           // of the output
    const char *runtime, *version, *missing; // in the arena; NULL: none
};

// ---- Looking at the model ---------------------------------------------------------------------

static enum msc_status check_output(const char *path) {
    if (!msc_path_ends_in(path, ".yaml") && !msc_path_ends_in(path, ".yml") &&
        !msc_path_ends_in(path, ".toml")) {
        return MSC_FAIL(MSC_E_INVALID,
                        "init: --output is \"%s\": expected a name that ends in .yaml or .toml, as "
                        "JSON has no comments",
                        path);
    }
    if (msc_path_ends_in(path, ".toml") && !msc_config_has_toml()) {
        return MSC_FAIL(MSC_E_UNSUPPORTED,
                        "init: --output is \"%s\", but this mscgym cannot read TOML, as it was "
                        "built without toml++: name a file that ends in .yaml",
                        path);
    }
    return msc_file_exists(path)
               ? MSC_FAIL(MSC_E_INVALID, "init: %s exists: name another file with -o, or remove it",
                          path)
               : MSC_OK;
}

static const struct proposal *choose_proposal(const struct msc_first_config_options *o) {
    const struct msc_target *target = o->target ? msc_target_find(o->target) : NULL;
    if (target && target->min_bits == 8) {
        return &bytes;
    }
    if (target && !target->runtime) {
        return &few_bits;
    }
    return msc_target_takes_dynamic(target, MSC_OP_LINEAR) ? &dynamic : &mixed;
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

// Rounds up, so that the bound stays above what it is derived from.
static double round_up(double x, double digits) {
    return ceil(x * digits - 1e-9) / digits;
}

static bool offers_float(const struct first *f) {
    return f->proposal == &mixed || f->proposal == &dynamic;
}

static enum msc_status find_bound(struct first *f) {
    const struct msc_space *space = msc_env_space(f->session.env);
    const struct msc_cost *cost = msc_space_find_cost(space, "size_ratio");
    const struct proposal *p = f->proposal;
    if (!cost || space->n_baselines < p->n_uniform) {
        return MSC_FAIL(MSC_E_INVALID, "init: %s has no tensor that the target can quantise",
                        f->options->model);
    }
    const struct msc_cost *bit_ops = msc_space_find_cost(space, "bit_ops_ratio");
    f->size_8 = msc_cost_value(cost, space->baselines[0].choices);
    f->bit_ops = NAN;
    if (bit_ops && offers_float(f)) {
        f->bit_ops =
            round_up(MORE_BIT_OPS * msc_cost_value(bit_ops, space->baselines[0].choices), 1000);
    }
    if (p == &bytes) {
        f->bound = round_up(f->size_8 + LEFT_FLOAT * (1 - f->size_8), 100);
        return MSC_OK;
    }
    f->size_4 = msc_cost_value(cost, space->baselines[p->n_uniform - 1].choices);
    f->bound =
        f->size_4 <= WORTHWHILE * f->size_8 ? round_up((f->size_8 + f->size_4) / 2, 100) : NAN;
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

// What a section or a search begins with, and how its keys begin.
static struct msc_notation open_section(const struct msc_notation *n, const char *name) {
    msc_str_printf(n->out, n->is_toml ? "\n[%s]\n" : "\n%s:\n", name);
    return (struct msc_notation){n->out, n->is_toml, n->is_toml ? "" : "  "};
}

static struct msc_notation open_search(const struct msc_notation *n) {
    msc_str_append(n->out, n->is_toml ? "\n[[quantize.gym]]\n" : "  gym:\n    - env:\n");
    return (struct msc_notation){n->out, n->is_toml, n->is_toml ? "env." : "        "};
}

static void put_json(const struct msc_notation *n, const char *key, const char *json,
                     void (*how)(const struct msc_notation *, const char *, const cJSON *)) {
    cJSON *value = cJSON_Parse(json);
    n->out->failed = n->out->failed || !value;
    if (value) {
        how(n, key, value);
    }
    cJSON_Delete(value);
}

// Owns the value; NULL: out of memory.
static void put(const struct msc_notation *n, const char *key, cJSON *value) {
    n->out->failed = n->out->failed || !value;
    if (value) {
        msc_notation_put(n, key, value);
    }
    cJSON_Delete(value);
}

// Puts an object of one member, such as {max: 0.2}. Owns the value.
static void put_member(const struct msc_notation *n, const char *key, const char *member,
                       cJSON *value) {
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = msc_json_add(object, member, value);
    n->out->failed = n->out->failed || status != MSC_OK;
    put(n, key, object);
}

static void say(const struct msc_notation *n, const char *format, ...) MSC_PRINTF(2, 3);
static void say(const struct msc_notation *n, const char *format, ...) {
    char text[1000]; // a longer name of a runtime is cut
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    msc_notation_comment(n, text);
}

// A relative path becomes relative to the folder of the output.
static enum msc_status write_path(const struct msc_notation *n, struct first *f, const char *key,
                                  const char *path) {
    char *relative = NULL;
    if (path[0] != '/') {
        MSC_TRY(msc_path_relative(&relative, &f->arena, path, f->folder));
        path = relative;
    }
    put(n, key, cJSON_CreateString(path));
    return MSC_OK;
}

static enum msc_status write_dataset(const struct msc_notation *top, struct first *f) {
    const struct msc_model *m = f->setup->model;
    MSC_TRY(write_path(top, f, "model", f->options->model));
    const struct msc_notation n = open_section(top, "dataset");
    MSC_TRY(write_path(&n, f, "inputs", f->options->inputs));
    if (f->options->labels) {
        MSC_TRY(write_path(&n, f, "labels", f->options->labels));
    } else {
        say(&n, "With the class of each sample, the accuracy is measured, too:\n");
        put_json(&n, "labels", "\"labels.npy\"", msc_notation_suggest);
    }
    say(&n, "The search sees %zu samples. The last %zu judge its winner.\n",
        msc_dataset_n_samples(m->dataset),
        m->validation ? msc_dataset_n_samples(m->validation) : 0);
    put(&n, "validation", cJSON_CreateNumber(HELD_BACK));
    return MSC_OK;
}

static void write_target(const struct msc_notation *top, struct first *f) {
    const struct msc_notation n = open_section(top, "quantize");
    if (f->version) {
        say(&n,
            "The runtime that the model is for. %s %s is installed, so the winner\n"
            "is also measured there.\n",
            f->runtime, f->version);
    } else if (f->runtime) {
        say(&n,
            "The runtime that the model is for. If %s is installed, the winner is\n"
            "also measured there. It was not found.\n",
            f->runtime);
    } else {
        say(&n, "The runtime that the model is for.\n");
    }
    put(&n, "target", cJSON_CreateString(f->session.entry->target));
}

static void write_bounds(const struct msc_notation *n, struct first *f) {
    const struct msc_notation bounds = {n->out, n->is_toml,
                                        n->is_toml ? "env.bounds." : "          "};
    say(n, "What a plan must keep; mscgym envs quantize lists the metrics.\n");
    if (isnan(f->bound)) {
        say(n,
            "The size hardly depends on the bits (size_ratio %.3g with 8 and %.3g with 4),\n"
            "so it is not bounded.\n",
            f->size_8, f->size_4);
    } else if (f->proposal == &bytes) {
        say(n, "The size relative to the float model is %.3g with 8 bits everywhere.\n", f->size_8);
    } else {
        say(n,
            "The size relative to the float model is %.3g with 8 bits everywhere and\n"
            "%.3g with 4.\n",
            f->size_8, f->size_4);
    }
    if (!isnan(f->bit_ops)) {
        say(n,
            "Float activations cost time: bit_ops_ratio allows a quarter more bit\n"
            "operations than 8 bits everywhere.%s\n",
            f->version
                ? " The runtime's own time can be bounded\nby latency_ratio: {max: 1}, which "
                  "is the float model's."
                : "");
    }
    if (!isnan(f->bound) || !isnan(f->bit_ops)) {
        msc_str_append(n->out, n->is_toml ? "" : "        bounds:\n");
    }
    if (!isnan(f->bound)) {
        put_member(&bounds, "size_ratio", "max", cJSON_CreateNumber(f->bound));
    }
    if (!isnan(f->bit_ops)) {
        put_member(&bounds, "bit_ops_ratio", "max", cJSON_CreateNumber(f->bit_ops));
    }
    if (f->options->labels) {
        say(n, "The smallest model that loses at most one point of accuracy, in place of this:\n");
        put_json(n, "objectives", "[\"size_bytes\"]", msc_notation_suggest);
        put_json(n, "bounds", "{\"accuracy_drop\":0.01}", msc_notation_suggest);
    }
}

static void write_search(const struct msc_notation *top, struct first *f) {
    const struct msc_notation env = open_search(top);
    const struct msc_notation n = {top->out, top->is_toml, top->is_toml ? "" : "      "};
    say(&env, "What may become of each of the %zu tensors.\n%s",
        msc_env_space(f->session.env)->n_tasks, f->proposal->comment);
    put_json(&env, "choices", f->proposal->choices, msc_notation_list);
    if (f->proposal != &bytes) {
        put_json(&env, "rules", f->proposal->rules, msc_notation_list);
    }
    write_bounds(&env, f);
    say(&n, "The agent proposes the plans; mscgym agents lists others.\n");
    put_member(&n, "agent", "type", cJSON_CreateString("auto"));
    say(&n, "The search may be stopped and continued at any time.\n");
    put_member(&n, "budget", "time", cJSON_CreateString(f->options->time));
    say(&n, "At the end, fits the winner's weights to the outputs of the float model.\n");
    put(&n, "distill", cJSON_CreateTrue());
}

static enum msc_status write_config(struct msc_str *out, struct first *f) {
    const struct msc_notation n = {out, msc_path_ends_in(f->options->output, ".toml"), ""};
    say(&n, "A search for mscgym. mscgym config lists all keys with their defaults. Paths start\n"
            "from the folder of this file.\n");
    msc_str_char(out, '\n');
    MSC_TRY(write_dataset(&n, f));
    write_target(&n, f);
    write_search(&n, f);
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
    if (!isnan(f->bit_ops)) {
        cJSON *bit_ops = cJSON_CreateObject();
        MSC_TRY(msc_json_add(found, "bit_ops_ratio", bit_ops));
        MSC_TRY(msc_json_add_number(bit_ops, "bound", f->bit_ops));
    }
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
