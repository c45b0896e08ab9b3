#include "base/alloc.h"
#include "base/str.h"
#include "tools/quantizer_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CHOICES = 64 };

static const char *const choice_keys[] = {"bits",  "type",  "group_size", "observer", "percentile",
                                          "scale", "float", "rounding",   "correct",  "dynamic"};
enum { N_CHOICE_KEYS = sizeof(choice_keys) / sizeof(choice_keys[0]) };
static const char *const scheme_keys[] = {"per_channel", "symmetric", "float"};
enum { N_SCHEME_KEYS = sizeof(scheme_keys) / sizeof(scheme_keys[0]) };

enum { MIN_BITS = 2, MAX_BITS = 16 };

static const char *const moment_keys[] = {"rows", "columns", "least"};
enum { N_MOMENT_KEYS = sizeof(moment_keys) / sizeof(moment_keys[0]) };

static const char *const group_names[] = {"tensor", "site", "joint"};

#define DEFAULT_PERCENTILE 99.99

// The observers for choices that name none.
struct defaults {
    enum msc_observer observers[2]; // [kind of site]
    bool are_auto[2];
    enum msc_observer of_blocks;
};

// Chooses minmax or mse, whichever was better on networks of many kinds (docs/quantize.md). With
// more bits, rounding errors are below the resolution of a histogram, or clipping costs more than
// it saves; then minmax is better.
enum msc_observer msc_quantizer__auto_observer(int kind, int32_t bits) {
    return bits <= (kind == MSC_SITE_WEIGHT ? 4 : 8) ? MSC_OBSERVER_MSE : MSC_OBSERVER_MINMAX;
}

static void take_defaults(struct msc_choice *c, const struct defaults *defaults) {
    for (int kind = 0; kind < 2; kind++) {
        c->observers[kind] = defaults->are_auto[kind] ? msc_quantizer__auto_observer(kind, c->bits)
                                                      : defaults->observers[kind];
    }
}

// `named`: does the choice name its observer?
static enum msc_status label_choice(struct msc_choice *c, bool named) {
    struct msc_str text = {0};
    if (c->is_float) {
        msc_str_append(&text, "float");
    } else if (c->type != MSC_DTYPE_NONE) {
        msc_str_append(&text, msc_dtype_name(c->type));
    } else if (c->blocks) {
        msc_str_append(&text, c->blocks->name);
        msc_str_printf(&text, "%s%s", named ? " " : "",
                       named ? msc_observer_name(c->observers[MSC_SITE_WEIGHT]) : "");
        msc_str_printf(&text, "%s%s", c->rounding != MSC_ROUNDING_NEAREST ? " " : "",
                       c->rounding != MSC_ROUNDING_NEAREST ? msc_rounding_name(c->rounding) : "");
    } else {
        msc_str_i64(&text, c->bits);
        msc_str_append(&text, c->is_dynamic ? " dynamic" : "");
        bool is_percentile = c->observers[0] == MSC_OBSERVER_PERCENTILE ||
                             c->observers[1] == MSC_OBSERVER_PERCENTILE;
        if (named) {
            msc_str_printf(&text, " %s", msc_observer_name(c->observers[0]));
        }
        if (is_percentile && (named || c->percentile != DEFAULT_PERCENTILE)) {
            msc_str_append(&text, " ");
            msc_str_double(&text, c->percentile);
        }
        if (c->group_size > 0) {
            msc_str_printf(&text, " g%d", c->group_size);
        }
        if (c->rounding != MSC_ROUNDING_NEAREST) {
            msc_str_printf(&text, " %s", msc_rounding_name(c->rounding));
        }
        if (c->correction != MSC_CORRECTION_NONE) {
            msc_str_printf(&text, " %s", msc_correction_name(c->correction));
        }
        if (c->range_scale != 1) {
            msc_str_append(&text, " x");
            msc_str_double(&text, c->range_scale);
        }
    }
    snprintf(c->label, sizeof(c->label), "%s", msc_str_text(&text));
    enum msc_status status = msc_str_status(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status get_optional_double(double *out, const cJSON *object, const char *key,
                                           double low, double high, const char *where) {
    if (!msc_json_get(object, key)) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_double(out, object, key, where));
    if (!(*out >= low && *out <= high)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: %s is %g, expected %g to %g", where, key, *out, low,
                        high);
    }
    return MSC_OK;
}

static enum msc_status fail_type(const char *name, const char *where) {
    struct msc_str known = {0};
    for (int i = 0; msc_gguf_block_type_at(i); i++) {
        msc_str_item(&known, msc_gguf_block_type_at(i)->name);
    }
    enum msc_status status =
        MSC_FAIL(MSC_E_INVALID, "%s: unknown type \"%s\": expected float16, bfloat16, %s", where,
                 name, msc_str_text(&known));
    msc_str_finish(&known);
    return status;
}

// Reads {"type": "float16"}; the only other key allowed is "bits", which must be 16.
static enum msc_status choice_read_float_type(struct msc_choice *c, const cJSON *object,
                                              const char *where) {
    const char *name;
    double bits = 16;
    MSC_TRY(msc_json_get_text(&name, object, "type", where));
    c->type = msc_dtype_find(name);
    if (c->type != MSC_DTYPE_F16 && c->type != MSC_DTYPE_BF16) {
        return fail_type(name, where);
    }
    bool has_bits = msc_json_get(object, "bits") != NULL;
    if (cJSON_GetArraySize(object) > 1 + has_bits) {
        return MSC_FAIL(MSC_E_INVALID, "%s: a choice of type %s allows no other key than bits",
                        where, name);
    }
    MSC_TRY(get_optional_double(&bits, object, "bits", MIN_BITS, MAX_BITS, where));
    if (bits != 16) {
        return MSC_FAIL(MSC_E_INVALID, "%s: bits is %g, but %s has 16", where, bits, name);
    }
    c->bits = 16;
    return label_choice(c, false);
}

enum { LEAST_GROUP = 16, MOST_OF_GROUP = 256 };

// Reads the group size. Runtimes support only powers of 2.
static enum msc_status read_group_size(struct msc_choice *c, const cJSON *object,
                                       const char *where) {
    double size = 0;
    if (!msc_json_get(object, "group_size")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_double(&size, object, "group_size", where));
    int32_t allowed = LEAST_GROUP;
    while (allowed < size && allowed < MOST_OF_GROUP) {
        allowed *= 2;
    }
    if (size != allowed) {
        return MSC_FAIL(MSC_E_INVALID, "%s: group_size is %g, expected 16, 32, 64, 128 or 256",
                        where, size);
    }
    c->group_size = (int32_t)size;
    return MSC_OK;
}

// Reads the rounding. Rounded integers are stored as bytes, so they have at most 8 bits.
static enum msc_status read_rounding(struct msc_choice *c, const cJSON *object, const char *where) {
    const char *name;
    if (!msc_json_get(object, "rounding")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&name, object, "rounding", where));
    if (!msc_rounding_find(&c->rounding, name)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: unknown rounding \"%s\": expected nearest, gptq or descent", where,
                        name);
    }
    return c->bits <= 8 || c->rounding == MSC_ROUNDING_NEAREST
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: rounding \"%s\" supports at most 8 bits, not %d",
                          where, name, (int)c->bits);
}

static enum msc_status read_correction(struct msc_choice *c, const cJSON *object,
                                       const char *where) {
    const char *name;
    if (!msc_json_get(object, "correct")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&name, object, "correct", where));
    if (!msc_correction_find(&c->correction, name)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: unknown correction \"%s\": expected none, affine or bias", where,
                        name);
    }
    return c->bits <= 8 || c->correction == MSC_CORRECTION_NONE
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: correct \"%s\" supports at most 8 bits, not %d",
                          where, name, (int)c->bits);
}

static enum msc_status read_observer(enum msc_observer *out, const cJSON *object, const char *key,
                                     const char *where) {
    const char *name;
    MSC_TRY(msc_json_get_text(&name, object, key, where));
    return msc_observer_find(out, name)
               ? MSC_OK
               : MSC_FAIL(
                     MSC_E_INVALID,
                     "%s: unknown observer \"%s\": expected minmax, percentile, mse or hessian",
                     where, name);
}

// Reads {"dynamic": true}, which the other keys accompany for weights.
static enum msc_status read_is_dynamic(struct msc_choice *c, const cJSON *object,
                                       const char *where) {
    if (!msc_json_get(object, "dynamic")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_bool(&c->is_dynamic, object, "dynamic", where));
    return !c->is_dynamic || c->bits == 8
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: dynamic supports 8 bits, not %d", where,
                          (int)c->bits);
}

// Reads {"type": "q4_k", "observer": "hessian", "rounding": "descent"}.
static enum msc_status read_blocks(struct msc_choice *c, const cJSON *object,
                                   const struct defaults *defaults, const char *where) {
    static const char *const keys[] = {"type", "observer", "rounding"};
    bool has_observer = msc_json_get(object, "observer") != NULL;
    MSC_TRY(msc_json_check_keys(object, keys, sizeof(keys) / sizeof(keys[0]), where));
    c->bits = c->blocks->bits;
    c->group_size = c->blocks->n;
    c->observers[MSC_SITE_WEIGHT] = defaults->of_blocks;
    MSC_TRY(read_rounding(c, object, where));
    if (has_observer) {
        MSC_TRY(read_observer(&c->observers[MSC_SITE_WEIGHT], object, "observer", where));
    } else if (c->rounding != MSC_ROUNDING_NEAREST) {
        c->observers[MSC_SITE_WEIGHT] = MSC_OBSERVER_HESSIAN;
    }
    enum msc_observer observer = c->observers[MSC_SITE_WEIGHT];
    return observer == MSC_OBSERVER_MSE || observer == MSC_OBSERVER_HESSIAN
               ? label_choice(c, has_observer)
               : MSC_FAIL(MSC_E_INVALID, "%s: type %s takes the observers mse and hessian, not %s",
                          where, c->blocks->name, msc_observer_name(observer));
}

static enum msc_status read_type(struct msc_choice *c, const cJSON *object,
                                 const struct defaults *defaults, const char *where) {
    const char *name;
    MSC_TRY(msc_json_get_text(&name, object, "type", where));
    c->blocks = msc_gguf_block_type_named(name);
    return c->blocks ? read_blocks(c, object, defaults, where)
                     : choice_read_float_type(c, object, where);
}

static enum msc_status read_choice(struct msc_choice *c, const cJSON *object,
                                   const struct defaults *defaults, const char *where) {
    double bits = 8;
    bool has_observer = msc_json_get(object, "observer") != NULL;
    *c = (struct msc_choice){.percentile = DEFAULT_PERCENTILE, .range_scale = 1};
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected an object such as {\"bits\": 8}", where);
    }
    MSC_TRY(msc_json_check_keys(object, choice_keys, N_CHOICE_KEYS, where));
    if (msc_json_get(object, "float")) {
        MSC_TRY(msc_json_get_bool(&c->is_float, object, "float", where));
    }
    if (c->is_float && cJSON_GetArraySize(object) > 1) {
        return MSC_FAIL(MSC_E_INVALID, "%s: a float choice allows no other key", where);
    }
    if (msc_json_get(object, "type")) {
        return read_type(c, object, defaults, where);
    }
    MSC_TRY(get_optional_double(&bits, object, "bits", MIN_BITS, MAX_BITS, where));
    MSC_TRY(get_optional_double(&c->percentile, object, "percentile", 50.0001, 100, where));
    MSC_TRY(get_optional_double(&c->range_scale, object, "scale", 0.01, 100, where));
    if (bits != floor(bits)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: bits is %g, expected a whole number", where, bits);
    }
    c->bits = (int32_t)bits;
    take_defaults(c, defaults);
    if (has_observer) {
        MSC_TRY(read_observer(&c->observers[0], object, "observer", where));
        bool is_hessian = c->observers[0] == MSC_OBSERVER_HESSIAN; // only for weights
        c->observers[1] = is_hessian ? MSC_OBSERVER_MSE : c->observers[0];
    }
    MSC_TRY(read_is_dynamic(c, object, where));
    MSC_TRY(read_group_size(c, object, where));
    MSC_TRY(read_rounding(c, object, where));
    MSC_TRY(read_correction(c, object, where));
    if (c->rounding != MSC_ROUNDING_NEAREST && !has_observer) {
        c->observers[0] = MSC_OBSERVER_HESSIAN;
    }
    return label_choice(c, has_observer);
}

// The default choices: 8 bits with the range scaled by 0.8 to 1.2.
static enum msc_status default_choices(struct msc_choice choices[], size_t *n,
                                       const struct defaults *defaults) {
    static const double scales[] = {0.8, 0.9, 1.0, 1.1, 1.2};
    for (*n = 0; *n < sizeof(scales) / sizeof(scales[0]); ++*n) {
        choices[*n] = (struct msc_choice){
            .bits = 8, .percentile = DEFAULT_PERCENTILE, .range_scale = scales[*n]};
        take_defaults(&choices[*n], defaults);
        MSC_TRY(label_choice(&choices[*n], false));
    }
    return MSC_OK;
}

// Reads "observers": {"weights": "auto", "activations": "percentile"}
static enum msc_status read_defaults(struct defaults *out, const cJSON *config) {
    static const char *const keys[] = {
        [MSC_SITE_WEIGHT] = "weights", [MSC_SITE_ACTIVATION] = "activations"};
    const cJSON *object;
    *out = (struct defaults){.observers = {MSC_OBSERVER_MINMAX, MSC_OBSERVER_MINMAX}};
    bool has_importance = cJSON_IsString(msc_json_get(config, "imatrix"));
    out->of_blocks = has_importance ? MSC_OBSERVER_HESSIAN : MSC_OBSERVER_MSE;
    if (!msc_json_get(config, "observers")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_object(&object, config, "observers", "env"));
    MSC_TRY(msc_json_check_keys(object, keys, 2, "env.observers"));
    for (int kind = 0; kind < 2; kind++) {
        const cJSON *item = msc_json_get(object, keys[kind]);
        out->are_auto[kind] =
            !item || (cJSON_IsString(item) && strcmp(item->valuestring, MSC_OBSERVER_AUTO) == 0);
        if (!out->are_auto[kind]) {
            MSC_TRY(read_observer(&out->observers[kind], object, keys[kind],
                                  "env.observers (besides auto)"));
        }
        if (kind == MSC_SITE_ACTIVATION && out->observers[kind] == MSC_OBSERVER_HESSIAN) {
            out->observers[kind] = MSC_OBSERVER_MSE;
        }
    }
    return MSC_OK;
}

static enum msc_status options_read_choices(struct msc_quantizer_options *out, const cJSON *config,
                                            struct msc_arena *arena) {
    struct defaults defaults;
    struct msc_choice *choices = msc_arena_array(arena, MAX_CHOICES, sizeof(choices[0]));
    const cJSON *list;
    MSC_TRY(MSC_ALLOCATED(choices));
    out->choices = choices;
    MSC_TRY(read_defaults(&defaults, config));
    if (!msc_json_get(config, "choices")) {
        return default_choices(choices, &out->n_choices, &defaults);
    }
    MSC_TRY(msc_json_get_array(&list, config, "choices", "env"));
    const cJSON *item;
    cJSON_ArrayForEach(item, list) {
        char where[48];
        snprintf(where, sizeof(where), "env.choices[%zu]", out->n_choices);
        if (out->n_choices == MAX_CHOICES) {
            return MSC_FAIL(MSC_E_INVALID, "env.choices has more than %d choices", MAX_CHOICES);
        }
        struct msc_choice *c = &choices[out->n_choices];
        MSC_TRY(read_choice(c, item, &defaults, where));
        for (size_t i = 0; i < out->n_choices; i++) {
            if (strcmp(choices[i].label, c->label) == 0) {
                return MSC_FAIL(MSC_E_INVALID, "%s is the same as env.choices[%zu] (\"%s\")", where,
                                i, c->label);
            }
        }
        out->n_choices++;
    }
    return out->n_choices > 0 ? MSC_OK : MSC_FAIL(MSC_E_INVALID, "env.choices: the list is empty");
}

static enum msc_status read_scheme(struct msc_operand_scheme *out, const cJSON *config,
                                   const char *key) {
    const cJSON *object;
    char where[32];
    if (!msc_json_get(config, key)) {
        return MSC_OK;
    }
    snprintf(where, sizeof(where), "env.%s", key);
    MSC_TRY(msc_json_get_object(&object, config, key, "env"));
    MSC_TRY(msc_json_check_keys(object, scheme_keys, N_SCHEME_KEYS, where));
    if (msc_json_get(object, "per_channel")) {
        MSC_TRY(msc_json_get_bool(&out->is_per_channel, object, "per_channel", where));
    }
    if (msc_json_get(object, "symmetric")) {
        MSC_TRY(msc_json_get_bool(&out->is_symmetric, object, "symmetric", where));
    }
    if (msc_json_get(object, "float")) {
        MSC_TRY(msc_json_get_bool(&out->is_float, object, "float", where));
    }
    return MSC_OK;
}

static bool is_label(const struct msc_quantizer_options *o, const char *label) {
    for (size_t i = 0; i < o->n_choices; i++) {
        if (strcmp(o->choices[i].label, label) == 0) {
            return true;
        }
    }
    return strcmp(label, "float") == 0;
}

static enum msc_status read_fixed(struct msc_quantizer_options *out, const cJSON *config,
                                  struct msc_arena *arena) {
    const cJSON *object = msc_json_get(config, "fix"), *item;
    if (!object) {
        return MSC_OK;
    }
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "env.fix: expected an object of names, such as "
                                       "{\"conv1.*\": \"float\"}");
    }
    struct msc_fixed_site *fixed =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(object) + 1, sizeof(fixed[0]));
    out->fixed = fixed;
    MSC_TRY(MSC_ALLOCATED(fixed));
    cJSON_ArrayForEach(item, object) {
        if (!cJSON_IsString(item) || !is_label(out, item->valuestring)) {
            const char *where = msc_arena_printf(arena, "env.fix[\"%s\"]", item->string);
            return msc_quantizer__fail_label(out, item, true, where ? where : "env.fix");
        }
        struct msc_fixed_site *f = &fixed[out->n_fixed++];
        f->pattern = msc_arena_strdup(arena, item->string);
        f->label = msc_arena_strdup(arena, item->valuestring);
        MSC_TRY(MSC_ALLOCATED(f->pattern && f->label));
    }
    return MSC_OK;
}

static enum msc_status read_group(struct msc_quantizer_options *out, const cJSON *config) {
    const char *name = "tensor";
    if (msc_json_get(config, "group")) {
        MSC_TRY(msc_json_get_text(&name, config, "group", "env"));
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, group_names[i]) == 0) {
            out->group = (enum msc_site_group)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "env.group: unknown value \"%s\": expected tensor, site or joint", name);
}

static enum msc_status read_sites(struct msc_quantizer_options *out, const cJSON *config) {
    const char *name = "inputs";
    if (msc_json_get(config, "sites")) {
        MSC_TRY(msc_json_get_text(&name, config, "sites", "env"));
    }
    out->all_sites = strcmp(name, "all") == 0;
    if (!out->all_sites && strcmp(name, "inputs") != 0) {
        return MSC_FAIL(MSC_E_INVALID, "env.sites: unknown value \"%s\": expected all or inputs",
                        name);
    }
    if (out->all_sites && !out->target->requantises) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env.sites: target %s requantises nothing; use \"inputs\", or the target "
                        "that the model is for",
                        out->target->name);
    }
    if (!out->all_sites && out->target->has_block_operators) {
        return MSC_FAIL(MSC_E_INVALID, "env.sites: target %s needs \"all\"; remove \"sites\"",
                        out->target->name);
    }
    if (out->all_sites && out->group == MSC_GROUP_SITE) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "env.group: with sites \"all\" a tensor has one scale for all its consumers; "
            "use \"tensor\" or \"joint\"");
    }
    return MSC_OK;
}

// llama.cpp computes with float activations. If weights are in its types, activations stay float,
// also without "activations" in the configuration.
static enum msc_status check_blocks(struct msc_quantizer_options *out, const cJSON *config) {
    const struct msc_choice *c = NULL;
    for (size_t i = 0; i < out->n_choices && !c; i++) {
        c = out->choices[i].blocks ? &out->choices[i] : NULL;
    }
    if (c && msc_json_get(config, "activations") && !out->activations.is_float) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env.activations: with weights of type %s, activations stay float; set "
                        "{\"float\": true}",
                        c->blocks->name);
    }
    out->activations.is_float = out->activations.is_float || c;
    return MSC_OK;
}

// A target sets each option for which its runtime supports only one value. Fails if the
// configuration sets another value.
static enum msc_status apply_target(struct msc_quantizer_options *out, const cJSON *config) {
    const struct msc_target *t = out->target;
    out->weights = (struct msc_operand_scheme){.is_symmetric = true, .is_per_channel = true};
    out->activations = (struct msc_operand_scheme){.is_symmetric = t->activations_symmetric};
    MSC_TRY(read_scheme(&out->weights, config, "weights"));
    MSC_TRY(read_scheme(&out->activations, config, "activations"));
    if (out->activations.is_per_channel && !t->takes_channels) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env.activations: target %s supports no scales per channel; remove "
                        "per_channel, or choose target generic",
                        t->name);
    }
    if ((t->weights_symmetric && !out->weights.is_symmetric) ||
        (t->weights_per_channel && !out->weights.is_per_channel) ||
        (t->activations_symmetric && !out->activations.is_symmetric)) {
        return MSC_FAIL(MSC_E_INVALID,
                        "target %s takes %s; remove contradicting keys from env.weights or "
                        "env.activations",
                        t->name, t->takes);
    }
    MSC_TRY(check_blocks(out, config));
    for (size_t i = 0; i < out->n_choices; i++) {
        const struct msc_choice *c = &out->choices[i];
        if (c->is_dynamic && !msc_target_takes_dynamic(t, MSC_OP_LINEAR)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "target %s has no dynamic quantisation; remove env.choices[%zu] "
                            "(\"%s\"), or choose target onnxruntime or generic",
                            t->name, i, c->label);
        }
        bool is_refused = c->bits < t->min_bits || c->bits > t->max_bits ||
                          (c->group_size > 0 && !t->takes_groups);
        if (!c->is_float && is_refused) {
            return MSC_FAIL(MSC_E_INVALID,
                            "target %s takes %s; remove env.choices[%zu] (\"%s\"), or choose "
                            "target generic",
                            t->name, t->takes, i, c->label);
        }
    }
    return MSC_OK;
}

// Reads "moments": {"rows": 4096, "columns": 1024, "least": 0.5}.
static enum msc_status read_moments(struct msc_quantizer_options *out, const cJSON *config) {
    const cJSON *object;
    double rows = 0, columns = 0;
    if (!msc_json_get(config, "moments")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_object(&object, config, "moments", "env"));
    MSC_TRY(msc_json_check_keys(object, moment_keys, N_MOMENT_KEYS, "env.moments"));
    MSC_TRY(get_optional_double(&rows, object, "rows", 1, 1e9, "env.moments"));
    MSC_TRY(get_optional_double(&columns, object, "columns", 16, 1e9, "env.moments"));
    MSC_TRY(get_optional_double(&out->least_rows, object, "least", 0, 1e9, "env.moments"));
    out->moment_rows = (int64_t)rows;
    out->moment_columns = (int64_t)columns;
    return MSC_OK;
}

static enum msc_status read_options(struct msc_quantizer_options *out, const cJSON *config,
                                    const char *target, struct msc_arena *arena) {
    *out = (struct msc_quantizer_options){0};
    if (msc_json_get(config, "target")) {
        MSC_TRY(msc_json_get_text(&target, config, "target", "env"));
    }
    MSC_TRY(msc_target_get(&out->target, target ? target : "generic", "env.target"));
    MSC_TRY(read_group(out, config));
    MSC_TRY(read_sites(out, config));
    MSC_TRY(options_read_choices(out, config, arena));
    MSC_TRY(apply_target(out, config));
    MSC_TRY(msc_json_get_texts(&out->include, &out->n_include, config, "include", "name patterns",
                               "env", arena));
    MSC_TRY(msc_json_get_texts(&out->exclude, &out->n_exclude, config, "exclude", "name patterns",
                               "env", arena));
    if (!cJSON_IsNull(msc_json_get(config, "outputs"))) {
        MSC_TRY(msc_json_get_texts(&out->outputs, &out->n_outputs, config, "outputs", "tensors",
                                   "env", arena));
    }
    if (!cJSON_IsNull(msc_json_get(config, "imatrix")) && msc_json_get(config, "imatrix")) {
        MSC_TRY(msc_json_get_text(&out->imatrix, config, "imatrix", "env"));
    }
    MSC_TRY(read_fixed(out, config, arena));
    MSC_TRY(read_moments(out, config));
    return msc_quantizer__read_rules(out, config, arena);
}

enum msc_status msc_quantizer_read_options(struct msc_quantizer_options *out, const cJSON *config,
                                           const char *target, struct msc_arena *arena) {
    return msc_json_of_user(read_options(out, config, target, arena));
}
