// Reads the rules of a file, and applies rules to a graph until none matches.
#include "graph/rules/rules_internal.h"

#include "base/file.h"

#include <string.h>

// ---- Reading ----------------------------------------------------------------------------------

static enum msc_status parse_rules(struct msc_rules *rules, struct msc_text_reader *r) {
    while (r->token.kind != MSC_TEXT_END) {
        MSC_TRY(msc_text_grow(&rules->items, rules->n, sizeof(rules->items[0]), r));
        struct rule *rule = msc_arena_alloc(r->arena, sizeof(*rule));
        MSC_TRY(MSC_ALLOCATED(rule));
        *rule = (struct rule){0};
        MSC_TRY(msc_rule__parse(rule, r));
        for (size_t i = 0; i < rules->n; i++) {
            if (strcmp(rules->items[i]->name, rule->name) == 0) {
                return MSC_TEXT_FAIL(r, &rule->place, "a rule above has the name '%s', too",
                                     rule->name);
            }
        }
        rules->items[rules->n++] = rule;
    }
    return MSC_OK;
}

enum msc_status msc_rules_read(struct msc_rules **out, const char *text, size_t length,
                               const char *name) {
    struct msc_text_reader r;
    struct msc_rules *rules = msc_alloc_zero(1, sizeof(*rules));
    MSC_TRY(MSC_ALLOCATED(rules));
    rules->name = msc_arena_strdup(&rules->arena, name);
    enum msc_status status = MSC_ALLOCATED(rules->name);
    if (status == MSC_OK) {
        status = msc_text_open(&r, &rules->arena, text, length, rules->name);
    }
    if (status == MSC_OK) {
        status = parse_rules(rules, &r);
    }
    if (status != MSC_OK) {
        msc_rules_destroy(rules);
        return status;
    }
    *out = rules;
    return MSC_OK;
}

enum msc_status msc_rules_load(struct msc_rules **out, const char *path) {
    char *text;
    size_t length;
    MSC_TRY(msc_file_read(&text, &length, path));
    enum msc_status status = msc_rules_read(out, text, length, path);
    msc_free(text);
    return status;
}

void msc_rules_destroy(struct msc_rules *rules) {
    if (rules != NULL) {
        msc_arena_finish(&rules->arena);
        msc_free(rules);
    }
}

size_t msc_rules_count(const struct msc_rules *rules) {
    return rules->n;
}

const char *msc_rules_name(const struct msc_rules *rules, size_t i) {
    return rules->items[i]->name;
}

// ---- Applying ---------------------------------------------------------------------------------

struct run {
    struct msc_graph *graph;
    const struct msc_rules *rules;
    int64_t most, n_done;
    struct rule_checks checks;
};

// A rule that is wrong, or cannot be checked, is refused. Lack of memory is no fault of the rule.
static enum msc_status refuse(const struct run *run, const struct rule *rule, const char *joint,
                              enum msc_status status) {
    if (status == MSC_OK || status == MSC_E_NOMEM || status == MSC_E_CANCELLED) {
        return status;
    }
    return msc_status_prefix(MSC_E_INVALID, "%s:%d:%d: rule %s is refused: at joint '%s'",
                             run->rules->name, rule->place.line, rule->place.column, rule->name,
                             joint);
}

static enum msc_status rewrite_at(bool *done, struct run *run, const struct rule *rule,
                                  int32_t joint) {
    struct rule_match m;
    bool found;
    const char *name = run->graph->joints[joint]->joint.name; // in the arena: outlives the joint
    *done = false;
    MSC_TRY(refuse(run, rule, name, msc_rule__match(&found, &m, rule, run->graph, joint)));
    if (!found) {
        return MSC_OK;
    }
    if (run->n_done == run->most) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s:%d:%d: rule %s still matches after %lld rewrites, which is the "
                        "limit",
                        run->rules->name, rule->place.line, rule->place.column, rule->name,
                        (long long)run->most);
    }
    MSC_TRY(refuse(run, rule, name, msc_rule__check(&run->checks, &m)));
    MSC_TRY(refuse(run, rule, name, msc_rule__replace(done, run->graph, &m)));
    run->n_done += *done;
    return MSC_OK;
}

// Rewrites every match of the rule once, in the order of the joints.
static enum msc_status sweep(int64_t *n, struct run *run, const struct rule *rule) {
    *n = 0;
    for (int32_t i = 0; i < run->graph->n_joints; i++) {
        bool done;
        MSC_TRY(rewrite_at(&done, run, rule, i));
        *n += done;
    }
    return MSC_OK;
}

static enum msc_status run_rules(struct run *run, int64_t counts[]) {
    int64_t n_before = -1;
    while (run->n_done != n_before) {
        n_before = run->n_done;
        for (size_t i = 0; i < run->rules->n; i++) {
            int64_t n = 1;
            while (n > 0) {
                MSC_TRY(sweep(&n, run, run->rules->items[i]));
                if (counts != NULL) {
                    counts[i] += n;
                }
            }
        }
    }
    return MSC_OK;
}

enum msc_status msc_rules_apply(struct msc_graph *g, int64_t counts[],
                                const struct msc_rules *rules,
                                const struct msc_rules_options *options) {
    struct run run = {
        .graph = g,
        .rules = rules,
        .most = options->most > 0 ? options->most : MSC_RULES_MOST_REWRITES,
        .checks = {.counterexample = options->counterexample},
    };
    for (size_t i = 0; counts != NULL && i < rules->n; i++) {
        counts[i] = 0;
    }
    enum msc_status status = run_rules(&run, counts);
    msc_free(run.checks.seen);
    return status;
}

enum msc_status msc_rules_apply_files(struct msc_graph *g, const char *const paths[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct msc_rules *rules;
        MSC_TRY(msc_rules_load(&rules, paths[i]));
        enum msc_status status = msc_rules_apply(g, NULL, rules, &(struct msc_rules_options){0});
        msc_rules_destroy(rules);
        MSC_TRY(status);
    }
    return MSC_OK;
}
