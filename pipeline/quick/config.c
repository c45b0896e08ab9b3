// Builds the configuration for msc_quick_quantize from its options, and checks names of tensors.
#include "pipeline/quick/quick_internal.h"

#include "base/json.h"
#include "base/str.h"
#include "env/api/drop.h"
#include "graph/target.h"

#include <math.h>
#include <string.h>

#define HELD_BACK 0.2

// ---- Names ------------------------------------------------------------------------------------

static bool is_json(const struct msc_quick_names *names) {
    char first = names->n == 1 ? names->items[0][0] : '\0';
    return first == '[' || first == '{';
}

static enum msc_status take_json(cJSON **out, const struct msc_quick_names *names,
                                 const char *option) {
    *out = cJSON_Parse(names->items[0]);
    return *out ? MSC_OK
                : MSC_FAIL(MSC_E_INVALID, "quantize: %s: \"%s\" is not JSON", option,
                           names->items[0]);
}

// Appends the names in a comma-separated string.
static enum msc_status split_names(cJSON *list, const char *text, const char *option) {
    for (const char *next = text; next; text = next + 1) {
        next = strchr(text, ',');
        size_t n = next ? (size_t)(next - text) : strlen(text);
        struct msc_str name = {0};
        if (n == 0) {
            return MSC_FAIL(MSC_E_INVALID, "quantize: %s: a name in the list is empty", option);
        }
        msc_str_printf(&name, "%.*s", (int)n, text);
        enum msc_status status = msc_str_status(&name);
        if (status == MSC_OK) {
            status = msc_json_push(list, cJSON_CreateString(msc_str_text(&name)));
        }
        msc_str_finish(&name);
        MSC_TRY(status);
    }
    return MSC_OK;
}

// Adds the names to `env` under `key`: as a list, or as JSON if they are given as JSON. Without
// names, adds nothing.
static enum msc_status add_names(cJSON *env, const char *key, const struct msc_quick_names *names,
                                 const char *option) {
    cJSON *list = NULL;
    if (names->n == 0) {
        return MSC_OK;
    }
    if (is_json(names)) {
        MSC_TRY(take_json(&list, names, option));
        return msc_json_add(env, key, list);
    }
    list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(env, key, list));
    for (size_t i = 0; i < names->n; i++) {
        MSC_TRY(split_names(list, names->items[i], option));
    }
    return MSC_OK;
}

// ---- The configuration ------------------------------------------------------------------------

static enum msc_status add_bound(cJSON *env, double most) {
    cJSON *bounds = cJSON_CreateObject();
    MSC_TRY(msc_json_add(env, "bounds", bounds));
    return msc_json_add_number(bounds, "accuracy" MSC_DROP_SUFFIX, most);
}

// Adds the choice of dynamic activations, as the last one.
static enum msc_status add_dynamic(cJSON *choices) {
    cJSON *choice = cJSON_CreateObject();
    MSC_TRY(msc_json_push(choices, choice));
    MSC_TRY(msc_json_add_number(choice, "bits", 8));
    return msc_json_add_bool(choice, "dynamic", true);
}

bool msc_quick__tries_dynamic(const struct msc_quick_options *o,
                              const struct msc_quick_effort *effort) {
    const struct msc_target *target = o->target ? msc_target_find(o->target) : NULL;
    return effort->tries_dynamic &&
           (!o->target || (target && msc_target_takes_dynamic(target, MSC_OP_LINEAR)));
}

static enum msc_status add_env(cJSON *entry, const struct msc_quick_options *o,
                               const struct msc_quick_effort *effort) {
    cJSON *env = cJSON_CreateObject();
    MSC_TRY(msc_json_add(entry, "env", env));
    cJSON *choices = cJSON_Parse(effort->choices);
    MSC_TRY(msc_json_add(env, "choices", choices));
    MSC_TRY(msc_quick__tries_dynamic(o, effort) ? add_dynamic(choices) : MSC_OK);
    MSC_TRY(effort->moments ? msc_json_add(env, "moments", cJSON_Parse(effort->moments)) : MSC_OK);
    MSC_TRY(o->sites ? msc_json_add_text(env, "sites", o->sites) : MSC_OK);
    MSC_TRY(o->loss ? msc_json_add_text(env, "loss", o->loss) : MSC_OK);
    MSC_TRY(o->imatrix ? msc_json_add_text(env, "imatrix", o->imatrix) : MSC_OK);
    MSC_TRY(o->has_accuracy_drop ? add_bound(env, o->accuracy_drop) : MSC_OK);
    MSC_TRY(add_names(env, "loss_tensors", &o->loss_tensors, "--loss-tensors"));
    MSC_TRY(add_names(env, "outputs", &o->outputs, "--outputs"));
    MSC_TRY(add_names(env, "exclude", &o->exclude, "--exclude"));
    return o->loss_tensors.n == 0 && o->outputs.n == 0
               ? msc_json_add_text(env, "loss_tensors", "auto")
               : MSC_OK;
}

static enum msc_status add_check(cJSON *config, const char *atol) {
    double number;
    if (!atol) {
        return MSC_OK;
    }
    if (!msc_parse_double(&number, atol) || !isfinite(number) || number < 0) {
        return MSC_FAIL(MSC_E_INVALID, "quantize: --atol is \"%s\", expected a number of 0 or more",
                        atol);
    }
    cJSON *baseline = cJSON_CreateObject(), *check = cJSON_CreateObject();
    enum msc_status status = msc_json_add(config, "baseline", baseline);
    if (status != MSC_OK) {
        cJSON_Delete(check);
        return status;
    }
    MSC_TRY(msc_json_add(baseline, "check_config", check));
    return msc_json_add_number(check, "atol", number);
}

static enum msc_status add_dataset(cJSON *config, const struct msc_quick_options *o) {
    cJSON *dataset = cJSON_CreateObject();
    MSC_TRY(msc_json_add(config, "dataset", dataset));
    MSC_TRY(msc_json_add_text(dataset, "inputs", o->inputs));
    MSC_TRY(o->labels ? msc_json_add_text(dataset, "labels", o->labels) : MSC_OK);
    MSC_TRY(o->batch > 0 ? msc_json_add_number(dataset, "batch", (double)o->batch) : MSC_OK);
    MSC_TRY(o->sequence > 0 ? msc_json_add_number(dataset, "sequence", (double)o->sequence)
                            : MSC_OK);
    return msc_json_add_number(dataset, "validation", HELD_BACK);
}

static enum msc_status add_section(cJSON *config, const struct msc_quick_options *o,
                                   const struct msc_quick_effort *effort) {
    cJSON *section = cJSON_CreateObject();
    MSC_TRY(msc_json_add(config, "quantize", section));
    MSC_TRY(o->target ? msc_json_add_text(section, "target", o->target) : MSC_OK);
    cJSON *gym = cJSON_CreateArray();
    MSC_TRY(msc_json_add(section, "gym", gym));
    cJSON *entry = cJSON_CreateObject();
    MSC_TRY(msc_json_push(gym, entry));
    MSC_TRY(effort->improves ? msc_json_add_bool(entry, "distill", true) : MSC_OK);
    return add_env(entry, o, effort);
}

// Checks options here, so that errors name the options and not keys of a configuration.
static enum msc_status check_options(const struct msc_quick_options *o) {
    const struct msc_target *target = NULL;
    MSC_TRY(o->target ? msc_target_get(&target, o->target, "quantize: --target") : MSC_OK);
    return !o->sites || strcmp(o->sites, "all") == 0 || strcmp(o->sites, "inputs") == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "quantize: --sites: unknown sites \"%s\": expected all or inputs",
                          o->sites);
}

static enum msc_status fill_config(cJSON *config, const struct msc_quick_options *o,
                                   const struct msc_quick_effort *effort) {
    MSC_TRY(check_options(o));
    MSC_TRY(add_dataset(config, o));
    MSC_TRY(msc_json_add_text(config, "model", o->model));
    MSC_TRY(msc_json_add_text(config, "verbose", "warning"));
    MSC_TRY(add_check(config, o->atol));
    return add_section(config, o, effort);
}

enum msc_status msc_quick__make_config(struct msc_config **out,
                                       const struct msc_quick_options *options,
                                       const struct msc_quick_effort *effort) {
    cJSON *json = cJSON_CreateObject();
    enum msc_status status =
        json ? fill_config(json, options, effort) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status != MSC_OK) {
        cJSON_Delete(json);
        return status;
    }
    MSC_TRY(msc_config_create(out, json, "quantize", ".", MSC_CONFIG_CODE_ALLOWED));
    (*out)->entries[0].place = options->model;
    return MSC_OK;
}

// ---- The loss ---------------------------------------------------------------------------------

// The first output if it is scores for each token: "logits" of three axes. NULL: it is not.
static const char *find_token_scores(const struct msc_graph *g) {
    const struct msc_tensor *t =
        msc_graph_n_outputs(g) > 0 ? msc_graph_tensor(g, msc_graph_output(g, 0)) : NULL;
    bool is_logits = t && t->n_dims == 3 && strstr(msc_tensor_label(t), "logits") != NULL;
    return is_logits ? t->name : NULL;
}

enum msc_status msc_quick__choose_loss(const struct msc_quick *q) {
    const struct msc_quick_options *o = q->options;
    const char *scores = find_token_scores(q->setup->model->graph);
    cJSON *env = q->setup->config->entries[0].env;
    if (!scores || o->loss || o->loss_tensors.n > 0 || o->outputs.n > 0) {
        return MSC_OK;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(env, "loss");
    cJSON_DeleteItemFromObjectCaseSensitive(env, "loss_tensors");
    MSC_TRY(msc_json_add_text(env, "loss", "kl"));
    return msc_json_add(env, "loss_tensors", cJSON_CreateStringArray(&scores, 1));
}

// ---- Names in the model -----------------------------------------------------------------------

static enum msc_status check_name(const struct msc_quick *q, const char *name, const char *option) {
    return msc_graph_find_tensor(q->setup->model->graph, name) != MSC_NO_ID
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "quantize: %s: %s has no tensor \"%s\"; `mscgym graph MODEL` lists them",
                          option, q->options->model, name);
}

enum msc_status msc_quick__check_names(const struct msc_quick *q) {
    static const char *const keys[][2] = {{"loss_tensors", "--loss-tensors"},
                                          {"outputs", "--outputs"}};
    const cJSON *env = q->setup->config->entries[0].env, *item;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        cJSON_ArrayForEach(item, msc_json_get(env, keys[i][0])) {
            const char *name = cJSON_IsString(item) ? item->valuestring : item->string;
            MSC_TRY(name ? check_name(q, name, keys[i][1]) : MSC_OK);
        }
    }
    return MSC_OK;
}
