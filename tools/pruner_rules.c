// Choices by name: `fix` sets the choice of a part, `rules` restrict its choices.
#include "base/str.h"
#include "tools/pruner_internal.h"

#include <math.h>
#include <string.h>

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status fail_label(const struct msc_pruner_options *o, const cJSON *found,
                                  bool is_fixed, const char *where) {
    struct msc_str labels = {0};
    for (size_t i = 0; i < o->n_choices; i++) {
        msc_str_printf(&labels, "%s\"%s\"", i > 0 ? ", " : "", o->choices[i].label);
    }
    msc_str_append(&labels, is_fixed ? ", \"whole\", or any density as a number" : "");
    enum msc_status status =
        cJSON_IsString(found)
            ? MSC_FAIL(MSC_E_INVALID, "%s: unknown choice \"%s\": expected one of %s", where,
                       found->valuestring, msc_str_text(&labels))
            : MSC_FAIL(MSC_E_INVALID, "%s: expected labels of choices: %s", where,
                       msc_str_text(&labels));
    msc_str_finish(&labels);
    return status;
}

// The choice with this label or density; MSC_NO_ID if there is none.
static int32_t find_choice(const struct msc_pruner_options *o, const cJSON *item) {
    for (size_t i = 0; i < o->n_choices; i++) {
        const struct msc_prune_choice *c = &o->choices[i];
        bool is_it = cJSON_IsString(item) ? strcmp(c->label, item->valuestring) == 0
                                          : cJSON_IsNumber(item) && !c->is_sparse &&
                                                fabs(c->density - item->valuedouble) < 1e-12;
        if (is_it) {
            return (int32_t)i;
        }
    }
    return MSC_NO_ID;
}

// Appends a choice with a density that no other choice has. It comes after the searched choices.
static enum msc_status add_density(struct msc_prune_fixed *out, struct msc_pruner_options *o,
                                   struct msc_prune_choice choices[], double density,
                                   const char *where, struct msc_arena *arena) {
    if (!(density > 0 && density <= 1)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: density is %g, expected more than 0 and at most 1",
                        where, density);
    }
    const char *label = msc_arena_printf(arena, "%g", density);
    choices[o->n_all] = (struct msc_prune_choice){
        .density = density, .criterion = MSC_CRITERION_HESSIAN, .label = label};
    out->choice = (int32_t)o->n_all++;
    return MSC_ALLOCATED(label);
}

static enum msc_status read_fixed(struct msc_prune_fixed *out, struct msc_pruner_options *o,
                                  struct msc_prune_choice choices[], const cJSON *item,
                                  struct msc_arena *arena) {
    const char *where = msc_arena_printf(arena, "env.fix[\"%s\"]", item->string);
    out->pattern = msc_arena_strdup(arena, item->string);
    out->choice = find_choice(o, item);
    MSC_TRY(MSC_ALLOCATED(where && out->pattern));
    bool is_whole = cJSON_IsString(item) && strcmp(item->valuestring, "whole") == 0;
    if (out->choice != MSC_NO_ID || is_whole) {
        return MSC_OK;
    }
    return cJSON_IsNumber(item) ? add_density(out, o, choices, item->valuedouble, where, arena)
                                : fail_label(o, item, true, where);
}

// Reads "fix": {"stem*": "whole", "fc1.weight": 0.75, "fc2.weight": "0.5 l2"}
static enum msc_status read_fix(struct msc_pruner_options *out, const cJSON *config,
                                struct msc_arena *arena) {
    const cJSON *object = msc_json_get(config, "fix"), *item;
    out->n_all = out->n_choices;
    if (!object || cJSON_IsNull(object)) {
        return MSC_OK;
    }
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "env.fix: expected an object of names, such as "
                                       "{\"stem.*\": \"whole\"}");
    }
    size_t n = (size_t)cJSON_GetArraySize(object);
    struct msc_prune_fixed *fixed = msc_arena_array(arena, n + 1, sizeof(fixed[0]));
    struct msc_prune_choice *choices =
        msc_arena_array(arena, out->n_choices + n + 1, sizeof(choices[0]));
    MSC_TRY(MSC_ALLOCATED(fixed && choices));
    memcpy(choices, out->choices, out->n_choices * sizeof(choices[0]));
    out->choices = choices;
    out->fixed = fixed;
    cJSON_ArrayForEach(item, object) {
        MSC_TRY(read_fixed(&fixed[out->n_fixed++], out, choices, item, arena));
    }
    return MSC_OK;
}

static enum msc_status read_rule(struct msc_prune_rule *rule, const struct msc_pruner_options *o,
                                 const cJSON *object, const char *where, struct msc_arena *arena) {
    static const char *const keys[] = {"name", "choices"};
    const cJSON *list, *label;
    const char *name;
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected an object", where);
    }
    MSC_TRY(msc_json_check_keys(object, keys, 2, where));
    MSC_TRY(msc_json_get_text(&name, object, "name", where));
    MSC_TRY(msc_json_get_array(&list, object, "choices", where));
    rule->pattern = msc_arena_strdup(arena, name);
    cJSON_ArrayForEach(label, list) {
        int32_t choice = find_choice(o, label);
        if (choice == MSC_NO_ID) {
            const char *place = msc_arena_printf(arena, "%s.choices", where);
            return fail_label(o, label, false, place ? place : where);
        }
        rule->allowed |= UINT64_C(1) << choice;
    }
    if (rule->allowed == 0) {
        return fail_label(o, NULL, false, where);
    }
    return MSC_ALLOCATED(rule->pattern);
}

enum msc_status msc_pruner__read_rules(struct msc_pruner_options *out, const cJSON *config,
                                       struct msc_arena *arena) {
    const cJSON *list = msc_json_get(config, "rules"), *object;
    MSC_TRY(read_fix(out, config, arena));
    if (!list || cJSON_IsNull(list)) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_array(&list, config, "rules", "env"));
    struct msc_prune_rule *rules =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof(rules[0]));
    out->rules = rules;
    MSC_TRY(MSC_ALLOCATED(rules));
    cJSON_ArrayForEach(object, list) {
        const char *where = msc_arena_printf(arena, "env.rules[%zu]", out->n_rules);
        MSC_TRY(where ? read_rule(&rules[out->n_rules++], out, object, where, arena)
                      : MSC_FAIL(MSC_E_NOMEM, "out of memory"));
    }
    return MSC_OK;
}

// ---- Fitting ----------------------------------------------------------------------------------

// A group matches by its own name, or by the name of a weight that makes its units.
static bool fits_part(const struct msc_pruner *p, const char *pattern, int32_t part) {
    if (part >= p->channels.n_groups) {
        return msc_glob_match(pattern, msc_graph_tensor(p->g, p->groups[part].tensor)->name);
    }
    const struct msc_channel_group *group = &p->channels.groups[part];
    bool fits = msc_glob_match(pattern, group->name);
    for (int32_t i = 0; i < group->n_axes && !fits; i++) {
        const struct msc_tensor *t = msc_graph_tensor(p->g, group->axes[i].tensor);
        fits = (group->axes[i].roles & MSC_CHANNEL_MAKES) && t->data &&
               msc_glob_match(pattern, t->name);
    }
    return fits;
}

// Does the choice apply to this kind of part? "whole" applies to both.
static bool is_about(const struct msc_pruner *p, const struct msc_prune_fixed *f, int32_t part) {
    return f->choice == MSC_NO_ID ||
           p->options->choices[f->choice].is_sparse == (part >= p->channels.n_groups);
}

const struct msc_prune_fixed *msc_pruner__find_fixed(const struct msc_pruner *p, int32_t part) {
    for (size_t i = 0; i < p->options->n_fixed; i++) {
        const struct msc_prune_fixed *f = &p->options->fixed[i];
        if (is_about(p, f, part) && fits_part(p, f->pattern, part)) {
            return f;
        }
    }
    return NULL;
}

// All choices of one kind: one bit per choice.
static uint64_t choices_of_kind(const struct msc_pruner_options *o, bool is_sparse) {
    uint64_t all = 0;
    for (size_t i = 0; i < o->n_choices; i++) {
        all |= (uint64_t)(o->choices[i].is_sparse == is_sparse) << i;
    }
    return all;
}

uint64_t msc_pruner__allowed(const struct msc_pruner *p, int32_t part) {
    uint64_t all = choices_of_kind(p->options, part >= p->channels.n_groups);
    for (size_t r = 0; r < p->options->n_rules; r++) {
        uint64_t allowed = p->options->rules[r].allowed & all;
        if (allowed != 0 && fits_part(p, p->options->rules[r].pattern, part)) {
            return allowed;
        }
    }
    return all;
}

static bool fits_any(const struct msc_pruner *p, const char *pattern) {
    for (int32_t i = 0; i < p->n_parts; i++) {
        if (fits_part(p, pattern, i)) {
            return true;
        }
    }
    return false;
}

// A pattern that matches nothing is probably misspelt.
enum msc_status msc_pruner__check_rules(const struct msc_pruner *p) {
    const struct msc_pruner_options *o = p->options;
    for (size_t i = 0; i < o->n_fixed; i++) {
        if (!fits_any(p, o->fixed[i].pattern)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "env.fix[\"%s\"] matches no group of channels; `mscgym graph MODEL "
                            "--channels` lists them",
                            o->fixed[i].pattern);
        }
    }
    for (size_t r = 0; r < o->n_rules; r++) {
        if (!fits_any(p, o->rules[r].pattern)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "env.rules[%zu] (\"%s\") matches no group of channels; `mscgym graph "
                            "MODEL --channels` lists them",
                            r, o->rules[r].pattern);
        }
    }
    return MSC_OK;
}
