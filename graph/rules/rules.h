// Rewriting of graphs by a user's rules. docs/rewrite.md describes the language.
//
// A rule has a pattern of joints, conditions, and joints that replace the pattern. Before a match
// is replaced, both sides are computed by the reference kernels on random inputs. If they differ,
// the rule is refused.
//
//     struct msc_rules *rules;
//     MSC_TRY(msc_rules_load(&rules, "gelu.msc"));
//     MSC_TRY(msc_rules_apply(graph, counts, rules, &(struct msc_rules_options){0}));
//     msc_rules_destroy(rules);
#ifndef MSC_GRAPH_RULES_RULES_H
#define MSC_GRAPH_RULES_RULES_H

#include "data/npy.h"
#include "graph/graph.h"

MSC_PUBLIC_BEGIN

struct msc_rules; // the rules of one text; constant once read

// *out is owned by the caller. Errors are MSC_E_FORMAT, and begin with "NAME:LINE:COLUMN: ".
enum msc_status msc_rules_read(struct msc_rules **out, const char *text, size_t length,
                               const char *name);
enum msc_status msc_rules_load(struct msc_rules **out, const char *path);
void msc_rules_destroy(struct msc_rules *rules); // accepts NULL
size_t msc_rules_count(const struct msc_rules *rules);
const char *msc_rules_name(const struct msc_rules *rules, size_t i); // borrowed

#define MSC_RULES_MOST_REWRITES 10000

struct msc_rules_options {
    int64_t most; // limit for the number of rewrites; 0: MSC_RULES_MOST_REWRITES
    // Receives the inputs on which a refused rule is wrong, and the outputs of both sides. May be
    // NULL. Remains empty if no rule is refused.
    struct msc_array_list *counterexample;
};

// Applies the rules in their order, each as often as it matches, until none matches. Joints in the
// bodies of other joints are not rewritten. counts[i] is the number of rewrites by rule i; may be
// NULL. The graph is finalized, before and after the call. If the call fails, the graph must not be
// used any more. MSC_E_INVALID: a rule is wrong, or the limit was reached.
enum msc_status msc_rules_apply(struct msc_graph *g, int64_t counts[],
                                const struct msc_rules *rules,
                                const struct msc_rules_options *options);

// Applies the rules of the files, in order, with the default options.
enum msc_status msc_rules_apply_files(struct msc_graph *g, const char *const paths[], size_t n);

MSC_PUBLIC_END

#endif
