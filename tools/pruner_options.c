// Reads the pruner's options from the environment's JSON object.
#include "base/alloc.h"
#include "base/str.h"
#include "tools/pruner_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CHOICES = 64, N_DENSITIES = 7 };

#define CRITERION_NAME(criterion, name) name,
static const char *const criterion_names[] = {MSC_CRITERION_LIST(CRITERION_NAME)};
#undef CRITERION_NAME

const char *msc_criterion_name(enum msc_criterion criterion) {
    return criterion_names[criterion];
}

static enum msc_status label_choice(struct msc_prune_choice *c, bool named,
                                    struct msc_arena *arena) {
    struct msc_str text = {0};
    if (c->sparsity.m > 0) {
        msc_str_printf(&text, "%d:%d", c->sparsity.n, c->sparsity.m);
    } else {
        msc_str_append(&text, c->is_sparse ? "sparsity " : "");
        msc_str_double(&text, c->is_sparse ? c->sparsity.share : c->density);
    }
    if (named) {
        msc_str_printf(&text, " %s", criterion_names[c->criterion]);
    }
    enum msc_status status = msc_str_status(&text);
    c->label = status == MSC_OK ? msc_arena_strdup(arena, msc_str_text(&text)) : NULL;
    msc_str_finish(&text);
    return MSC_ALLOCATED(c->label);
}

static enum msc_status find_criterion(enum msc_criterion *out, const char *name,
                                      const char *where) {
    for (int i = 0; i < MSC_N_CRITERIA; i++) {
        if (strcmp(criterion_names[i], name) == 0) {
            *out = (enum msc_criterion)i;
            return MSC_OK;
        }
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "%s: unknown criterion \"%s\": expected l1, l2, energy, hessian or loss", where,
                    name);
}

// Reads "N:M".
static enum msc_status read_pattern(struct msc_sparsity *out, const cJSON *object,
                                    const char *where) {
    const char *text;
    int end = 0;
    MSC_TRY(msc_json_get_text(&text, object, "pattern", where));
    if (sscanf(text, "%2d:%2d%n", &out->n, &out->m, &end) != 2 || text[end] != '\0' || out->n < 1 ||
        out->m <= out->n || out->m > MSC_SPARSITY_MOST) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s.pattern is \"%s\", expected \"N:M\" such as \"2:4\" (keep N of each M weights, 0 < "
            "N < M <= %d)",
            where, text, MSC_SPARSITY_MOST);
    }
    out->share = 1 - (double)out->n / out->m;
    return MSC_OK;
}

static enum msc_status read_sparsity(struct msc_prune_choice *out, const cJSON *object,
                                     const char *where) {
    double share;
    bool has_pattern = msc_json_get(object, "pattern") != NULL;
    MSC_TRY(has_pattern ? read_pattern(&out->sparsity, object, where) : MSC_OK);
    if (msc_json_get(object, "sparsity")) {
        MSC_TRY(msc_json_get_double(&share, object, "sparsity", where));
        if (!(share >= 0 && share < 1)) {
            return MSC_FAIL(MSC_E_INVALID, "%s.sparsity is %g, expected at least 0 and less than 1",
                            where, share);
        }
        if (has_pattern && fabs(share - out->sparsity.share) > 1e-6) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s.sparsity is %g, but pattern %d:%d means %g; remove one of them",
                            where, share, out->sparsity.n, out->sparsity.m, out->sparsity.share);
        }
        out->sparsity.share = share;
    }
    return MSC_OK;
}

static enum msc_status read_density(struct msc_prune_choice *out, const cJSON *object,
                                    const char *where) {
    MSC_TRY(msc_json_get_double(&out->density, object, "density", where));
    if (!(out->density > 0 && out->density <= 1)) {
        return MSC_FAIL(MSC_E_INVALID, "%s.density is %g, expected more than 0 and at most 1",
                        where, out->density);
    }
    return MSC_OK;
}

static enum msc_status read_choice(struct msc_prune_choice *out, const cJSON *object,
                                   const char *where, struct msc_arena *arena) {
    static const char *const keys[] = {"density", "criterion", "sparsity", "pattern"};
    const char *name = NULL;
    *out = (struct msc_prune_choice){.criterion = MSC_CRITERION_HESSIAN};
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected an object such as {\"density\": 0.5}", where);
    }
    MSC_TRY(msc_json_check_keys(object, keys, 4, where));
    out->is_sparse = msc_json_get(object, "sparsity") || msc_json_get(object, "pattern");
    if (out->is_sparse && msc_json_get(object, "density")) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: a choice has a density (of channels) or a sparsity (of weights), not both; "
            "make two choices",
            where);
    }
    MSC_TRY(out->is_sparse ? read_sparsity(out, object, where) : read_density(out, object, where));
    if (msc_json_get(object, "criterion")) {
        MSC_TRY(msc_json_get_text(&name, object, "criterion", where));
        MSC_TRY(find_criterion(&out->criterion, name, where));
    }
    if (out->is_sparse && out->criterion == MSC_CRITERION_LOSS) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s.criterion: \"loss\" does not apply to single weights, expected l1, l2, "
                        "energy or hessian",
                        where);
    }
    bool is_whole = out->is_sparse ? out->sparsity.share <= 0 : out->density >= 1;
    return label_choice(out, name != NULL && !is_whole, arena);
}

static enum msc_status check_labels(const struct msc_pruner_options *o) {
    for (size_t i = 0; i < o->n_choices; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(o->choices[i].label, o->choices[k].label) == 0) {
                return MSC_FAIL(MSC_E_INVALID, "env.choices[%zu] is the same as choices[%zu]", i,
                                k);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status read_choices(struct msc_pruner_options *out, const cJSON *config,
                                    struct msc_arena *arena) {
    const cJSON *list = msc_json_get(config, "choices");
    size_t n = list ? (size_t)cJSON_GetArraySize(list) : N_DENSITIES;
    struct msc_prune_choice *choices = msc_arena_array(arena, n + 1, sizeof(choices[0]));
    out->choices = choices;
    MSC_TRY(MSC_ALLOCATED(choices));
    if (list && (!cJSON_IsArray(list) || n == 0 || n > MAX_CHOICES)) {
        return MSC_FAIL(MSC_E_INVALID, "env.choices: expected a list of 1 to %d choices",
                        (int)MAX_CHOICES);
    }
    // Without a list, adds the default densities.
    for (size_t i = 0; !list && i < n; i++) {
        choices[i] = (struct msc_prune_choice){.density = (double)(8 - (int)i) / 10,
                                               .criterion = MSC_CRITERION_HESSIAN};
        MSC_TRY(label_choice(&choices[i], false, arena));
    }
    const cJSON *item;
    size_t i = 0;
    cJSON_ArrayForEach(item, list) {
        const char *where = msc_arena_printf(arena, "env.choices[%zu]", i);
        MSC_TRY(where ? read_choice(&choices[i++], item, where, arena)
                      : MSC_FAIL(MSC_E_NOMEM, "out of memory"));
    }
    out->n_choices = n;
    return check_labels(out);
}

static enum msc_status read_options(struct msc_pruner_options *out, const struct cJSON *config,
                                    struct msc_arena *arena) {
    MSC_TRY(read_choices(out, config, arena));
    MSC_TRY(msc_pruner__read_rules(out, config, arena));
    MSC_TRY(msc_json_get_texts(&out->include, &out->n_include, config, "include", "name patterns",
                               "env", arena));
    return msc_json_get_texts(&out->exclude, &out->n_exclude, config, "exclude", "name patterns",
                              "env", arena);
}

enum msc_status msc_pruner_read_options(struct msc_pruner_options *out, const struct cJSON *config,
                                        struct msc_arena *arena) {
    return msc_json_of_user(read_options(out, config, arena));
}
