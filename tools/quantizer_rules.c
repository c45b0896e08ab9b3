// Restricts the choices of sites by rules: for each site, the first rule that matches decides.
#include "tools/quantizer_internal.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const char *const rule_keys[] = {"kind", "name", "op", "producer", "consumer", "choices"};
enum { N_RULE_KEYS = sizeof(rule_keys) / sizeof(rule_keys[0]) };

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status read_pattern(const char **out, const cJSON *object, const char *key,
                                    const char *where, struct msc_arena *arena) {
    const char *text = NULL;
    *out = NULL;
    if (!msc_json_get(object, key)) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&text, object, key, where));
    *out = msc_arena_strdup(arena, text);
    return MSC_ALLOCATED(*out);
}

static enum msc_status read_kind(struct msc_choice_rule *rule, const cJSON *object,
                                 const char *where) {
    const char *name = NULL;
    rule->kind = MSC_SITE_KINDS;
    if (!msc_json_get(object, "kind")) {
        return MSC_OK;
    }
    MSC_TRY(msc_json_get_text(&name, object, "kind", where));
    bool is_weight = strcmp(name, "weight") == 0;
    rule->kind = is_weight ? MSC_SITE_WEIGHT : MSC_SITE_ACTIVATION;
    return is_weight || strcmp(name, "activation") == 0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s.kind: unknown kind \"%s\": expected weight or activation", where,
                          name);
}

enum msc_status msc_quantizer__fail_label(const struct msc_quantizer_options *o, const cJSON *found,
                                          bool takes_float, const char *where) {
    struct msc_str labels = {0};
    for (size_t i = 0; i < o->n_choices; i++) {
        msc_str_printf(&labels, "%s\"%s\"", i > 0 ? ", " : "", o->choices[i].label);
    }
    msc_str_append(&labels, takes_float ? ", \"float\"" : "");
    enum msc_status status =
        cJSON_IsString(found)
            ? MSC_FAIL(MSC_E_INVALID, "%s: unknown choice \"%s\": expected one of %s", where,
                       found->valuestring, msc_str_text(&labels))
            : MSC_FAIL(MSC_E_INVALID, "%s: expected labels of choices: %s", where,
                       msc_str_text(&labels));
    msc_str_finish(&labels);
    return status;
}

static enum msc_status add_label(struct msc_choice_rule *rule,
                                 const struct msc_quantizer_options *o, const cJSON *label,
                                 const char *where) {
    for (size_t c = 0; c < o->n_choices && cJSON_IsString(label); c++) {
        if (strcmp(o->choices[c].label, label->valuestring) == 0) {
            rule->allowed |= UINT64_C(1) << c;
            return MSC_OK;
        }
    }
    char place[64];
    snprintf(place, sizeof place, "%s.choices", where);
    return msc_quantizer__fail_label(o, label, false, place);
}

static enum msc_status read_labels(struct msc_choice_rule *rule,
                                   const struct msc_quantizer_options *o, const cJSON *object,
                                   const char *where) {
    const cJSON *list = msc_json_get(object, "choices");
    const cJSON *label = NULL;
    if (cJSON_GetArraySize(list) == 0) {
        return add_label(rule, o, NULL, where);
    }
    cJSON_ArrayForEach(label, list) {
        MSC_TRY(add_label(rule, o, label, where));
    }
    return MSC_OK;
}

static enum msc_status read_rule(struct msc_choice_rule *rule,
                                 const struct msc_quantizer_options *o, const cJSON *object,
                                 const char *where, struct msc_arena *arena) {
    const cJSON *item = NULL;
    if (!cJSON_IsObject(object)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: expected an object", where);
    }
    cJSON_ArrayForEach(item, object) {
        bool is_known = false;
        for (int k = 0; k < N_RULE_KEYS; k++) {
            is_known = is_known || strcmp(item->string, rule_keys[k]) == 0;
        }
        if (!is_known) {
            return msc_json_fail_key(item->string, rule_keys, N_RULE_KEYS, where);
        }
    }
    MSC_TRY(read_kind(rule, object, where));
    MSC_TRY(read_pattern(&rule->name, object, "name", where, arena));
    MSC_TRY(read_pattern(&rule->op, object, "op", where, arena));
    MSC_TRY(read_pattern(&rule->producer, object, "producer", where, arena));
    MSC_TRY(read_pattern(&rule->consumer, object, "consumer", where, arena));
    return read_labels(rule, o, object, where);
}

enum msc_status msc_quantizer__read_rules(struct msc_quantizer_options *out, const cJSON *config,
                                          struct msc_arena *arena) {
    const cJSON *list = msc_json_get(config, "rules");
    const cJSON *object = NULL;
    if (!list || cJSON_IsNull(list)) {
        return MSC_OK;
    }
    if (!cJSON_IsArray(list)) {
        return MSC_FAIL(MSC_E_INVALID, "env.rules: expected a list of rules: [{...}]");
    }
    struct msc_choice_rule *rules =
        msc_arena_array(arena, (size_t)cJSON_GetArraySize(list) + 1, sizeof(rules[0]));
    out->rules = rules;
    MSC_TRY(MSC_ALLOCATED(rules));
    cJSON_ArrayForEach(object, list) {
        const char *where = msc_arena_printf(arena, "env.rules[%zu]", out->n_rules);
        MSC_TRY(MSC_ALLOCATED(where));
        MSC_TRY(read_rule(&rules[out->n_rules++], out, object, where, arena));
    }
    return MSC_OK;
}

// ---- Fitting ----------------------------------------------------------------------------------

// Matches MSC's name of the operator ("nn.relu") or ONNX's ("Relu"). NULL matches all.
static bool fits_op(const char *pattern, const struct msc_joint *j) {
    const struct msc_op_info *op = msc_op_info(j->op);
    return !pattern || msc_glob_match(pattern, op->name) || msc_glob_match(pattern, op->onnx);
}

static bool fits_joint(const char *pattern, const struct msc_joint *j) {
    return fits_op(pattern, j) || msc_glob_match(pattern, j->name);
}

// Does one joint that reads the site match both the rule's `op` and its `consumer`?
static bool fits_readers(const struct msc_choice_rule *rule, const struct msc_quantizer *q,
                         const struct msc_site *s) {
    if (!rule->op && !rule->consumer) {
        return true;
    }
    for (int32_t k = 0; k < s->n_slots; k++) {
        int32_t joint = q->sites.slots[s->slots[k]].joint;
        const struct msc_joint *j = joint == MSC_NO_ID ? NULL : msc_graph_joint(q->graph, joint);
        if (j && fits_op(rule->op, j) && fits_joint(rule->consumer, j)) {
            return true;
        }
    }
    return false;
}

static bool fits_site(const struct msc_choice_rule *rule, const struct msc_quantizer *q,
                      int32_t site) {
    const struct msc_site *s = &q->sites.sites[site];
    const struct msc_tensor *t = msc_graph_tensor(q->graph, s->tensor);
    if (rule->kind != MSC_SITE_KINDS && rule->kind != (int)s->kind) {
        return false;
    }
    if (rule->name && !msc_glob_match(rule->name, s->name) &&
        !(t->alias[0] && msc_glob_match(rule->name, t->alias))) {
        return false;
    }
    if (rule->producer && (t->producer == MSC_NO_ID ||
                           !fits_joint(rule->producer, msc_graph_joint(q->graph, t->producer)))) {
        return false;
    }
    return fits_readers(rule, q, s);
}

// Takes blocks from weights whose rows do not fill them. MSC_E_INVALID: nothing else is left.
static enum msc_status drop_blocks(struct msc_quantizer *q, int32_t site) {
    const struct msc_site *s = &q->sites.sites[site];
    const struct msc_tensor *t = msc_graph_tensor(q->graph, s->tensor);
    uint64_t before = q->allowed[site];
    bool is_left = false;
    for (size_t c = 0; c < q->n_choices; c++) {
        if (!msc_quantizer__takes_blocks(q, site, c)) {
            q->allowed[site] &= ~(UINT64_C(1) << c);
        }
        is_left = is_left || q->allowed[site] >> c & 1;
    }
    bool is_searched = q->included[site] && q->fixed[site] == MSC_NO_ID;
    return is_left || !is_searched || before == q->allowed[site]
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "none of env.choices fits weight %s with rows of %lld elements: add a "
                          "type with smaller blocks, such as q8_0, or {\"float\": true}",
                          s->name, (long long)(s->group_axis >= 0 ? t->dims[s->group_axis] : 1));
}

// Takes dynamic choices from activations that do not support them. If no other choice is left, the
// activation stays float.
static void drop_dynamic(struct msc_quantizer *q, int32_t site) {
    uint64_t left = 0;
    for (size_t c = 0; c < q->n_choices; c++) {
        if (msc_quantizer__is_dynamic(q, site, c) && !q->sites.sites[site].takes_dynamic) {
            q->allowed[site] &= ~(UINT64_C(1) << c);
        }
        left |= q->allowed[site] & UINT64_C(1) << c;
    }
    if (left == 0 && q->fixed[site] == MSC_NO_ID) {
        q->fixed[site] = MSC_FIXED_FLOAT;
    }
}

const char *msc_quantizer__listing(char text[MSC_QUANTIZER_LISTING_BYTES],
                                   const struct msc_quantizer *q) {
    const struct msc_target *target = q->sites.scheme.target;
    snprintf(text, MSC_QUANTIZER_LISTING_BYTES, "mscgym graph MODEL --sites%s%s",
             target ? " --target " : "", target ? target->name : "");
    return text;
}

enum msc_status msc_quantizer__apply_rules(struct msc_quantizer *q,
                                           const struct msc_quantizer_options *o) {
    q->allowed = msc_arena_array(&q->arena, (size_t)q->sites.n_sites + 1, sizeof(q->allowed[0]));
    MSC_TRY(MSC_ALLOCATED(q->allowed));
    for (int32_t i = 0; i < q->sites.n_sites; i++) {
        q->allowed[i] = UINT64_MAX;
        for (size_t r = 0; r < o->n_rules && q->allowed[i] == UINT64_MAX; r++) {
            q->allowed[i] = fits_site(&o->rules[r], q, i) ? o->rules[r].allowed : UINT64_MAX;
        }
        drop_dynamic(q, i);
        MSC_TRY(drop_blocks(q, i));
    }
    // A rule that matches nothing is probably misspelt.
    for (size_t r = 0; r < o->n_rules; r++) {
        bool fits = false;
        for (int32_t i = 0; i < q->sites.n_sites && !fits; i++) {
            fits = fits_site(&o->rules[r], q, i);
        }
        if (!fits) {
            char listing[MSC_QUANTIZER_LISTING_BYTES];
            return MSC_FAIL(MSC_E_INVALID, "env.rules[%zu] matches no site; `%s` lists them", r,
                            msc_quantizer__listing(listing, q));
        }
    }
    return MSC_OK;
}

uint64_t msc_quantizer_allowed(const struct msc_quantizer *q, int32_t site) {
    return q->allowed[site];
}
