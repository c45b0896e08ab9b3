// What the quantizer's sources share.
#ifndef MSC_TOOLS_QUANTIZER_INTERNAL_H
#define MSC_TOOLS_QUANTIZER_INTERNAL_H

#include "base/alloc.h"
#include "tools/quantizer.h"

struct msc_quantizer {
    const struct msc_graph *graph;
    struct msc_arena arena;
    struct msc_sites sites;
    enum msc_site_group group;
    size_t n_choices;
    struct msc_choice *choices;
    struct msc_operand_scheme weights, activations;
    bool has_lowest;        // weights of observer hessian have the lowest integer, too
    bool *included;         // [n_sites]
    bool *left;             // [n_sites] they stay float for what they hold
    bool *asked;            // [n_tensors] of the graph: some joint behind asks whether they are NaN
    uint64_t *allowed;      // [n_sites] a bit for each choice
    int32_t *fixed;         // [n_sites] choice, MSC_FIXED_FLOAT or MSC_NO_ID
    struct msc_edit *edits; // [n_sites][n_choices]; bits 0: not computed
};

// quantizer_rules.c: the key "rules", once choices are read; what it leaves each site.
enum msc_status msc_quantizer__read_rules(struct msc_quantizer_options *out, const cJSON *config,
                                          struct msc_arena *arena);
enum msc_status msc_quantizer__apply_rules(struct msc_quantizer *q,
                                           const struct msc_quantizer_options *o);
// What is found in the place of the label of a choice, and which labels there are. MSC_E_INVALID.
enum msc_status msc_quantizer__fail_label(const struct msc_quantizer_options *o, const cJSON *found,
                                          bool takes_float, const char *where);
// quantizer_left.c: fills `asked`; is that so of a tensor of a site?
enum msc_status msc_quantizer__find_questions(struct msc_quantizer *q);
bool msc_quantizer__is_asked(const struct msc_quantizer *q, int32_t site);
// Marks weights that hold NaN or infinity as left. MSC_E_INVALID: one has no elements.
enum msc_status msc_quantizer__leave_infinite_weights(struct msc_quantizer *q);
// Sites that are left are no longer included. MSC_E_INVALID: there are no others.
enum msc_status msc_quantizer__drop_left(struct msc_quantizer *q);
// How a site's choice is observed and rounded.
struct msc_observation msc_quantizer__observation(const struct msc_quantizer *q, int32_t site,
                                                  int32_t choice);
// The cut of its scheme (msc_scheme): that of hard swishes, where these alone read the site as bytes
// for a target with forms; else 0.
float msc_quantizer__cut(const struct msc_quantizer *q, int32_t site);
// True when quants of the site are needed: it is a task or fixed to a choice.
bool msc_quantizer__is_used(const struct msc_quantizer *q, int32_t site);
// True when the choice has scales, which come from what is observed.
bool msc_quantizer__has_scales(const struct msc_quantizer *q, size_t choice);
// How many scales a site has under a choice, and along what; without the scales.
struct msc_quant msc_quantizer__form(const struct msc_quantizer *q, int32_t site, int32_t choice);
// Sets the quant of that form from the scales and zero points of another, copied into the arena, and
// from its integers and shifts, of which it takes references.
enum msc_status msc_quantizer__set(struct msc_quantizer *q, int32_t site, int32_t choice,
                                   const struct msc_quant *from);
// What the observer of a choice finds for a weight with these elements, rounded to nearest. *out is the
// caller's (msc_quant_finish). MSC_E_NOMEM.
enum msc_status msc_quantizer__fit_elements(struct msc_quant *out, const struct msc_quantizer *q,
                                            int32_t site, int32_t choice,
                                            const struct msc_array *elements);
// As msc_weight_steps_widen, beside whatever is chosen for activations.
enum msc_status msc_quantizer__widen_quant(struct msc_quant *out, const struct msc_quantizer *q,
                                           int32_t site, const struct msc_quant *quant,
                                           const struct msc_array *bias);
// Widens the scales of weights whose joints have biases that would not fit int32, where the target
// rounds these (quantizer_widen.c).
enum msc_status msc_quantizer__widen(struct msc_quantizer *q);

#endif
