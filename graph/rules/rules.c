// Applies rules to a graph until none matches.
#include "graph/rules/rules_internal.h"

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
                        "%s:%d:%d: rule %s still matches after %lld rewrites, which is the limit",
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
