// Internal to tools/: shared by the quantizer's sources.
#ifndef MSC_TOOLS_QUANTIZER_INTERNAL_H
#define MSC_TOOLS_QUANTIZER_INTERNAL_H

#include "base/alloc.h"
#include "data/npy.h"
#include "tools/quantizer.h"

struct msc_quantizer {
    const struct msc_graph *graph;
    struct msc_arena arena;
    struct msc_sites sites;
    enum msc_site_group group;
    size_t n_choices;
    int64_t moment_rows, moment_columns; // as in the options
    double least_rows;
    struct msc_choice *choices;
    struct msc_operand_scheme weights, activations;
    int n_threads;                    // for encoding blocks; set by observation
    bool has_lowest;                  // weights with observer `hessian` may use the lowest integer
    struct msc_array_list importance; // by names of weights
    struct msc_hash importance_hash;
    bool *included;                  // [n_sites]
    bool *left;                      // [n_sites] left float because of their values
    bool *asked;                     // [n_tensors] of the graph: a later joint tests for NaN
    uint64_t *allowed;               // [n_sites] one bit per choice
    int32_t *fixed;                  // [n_sites] choice, MSC_FIXED_FLOAT or MSC_NO_ID
    struct msc_edit *edits;          // [n_sites][n_choices]; bits 0: not computed
    struct msc_quantizer_held *held; // [n_sites][n_choices]
};

static inline struct msc_quantizer_held *msc_quantizer__held(struct msc_quantizer *q, int32_t site,
                                                             size_t choice) {
    return &q->held[(size_t)site * q->n_choices + choice];
}

// quantizer_rules.c. The first function reads "rules" (`out` must have the choices); the second
// applies them to sites.
enum msc_status msc_quantizer__read_rules(struct msc_quantizer_options *out, const cJSON *config,
                                          struct msc_arena *arena);
enum msc_status msc_quantizer__apply_rules(struct msc_quantizer *q,
                                           const struct msc_quantizer_options *o);
// The command that lists the sites, for a message about a name that matches none. Returns `text`.
#define MSC_QUANTIZER_LISTING_BYTES 96
const char *msc_quantizer__listing(char text[MSC_QUANTIZER_LISTING_BYTES],
                                   const struct msc_quantizer *q);
// Fails with MSC_E_INVALID: `found` is not the label of a choice; the message lists the labels.
enum msc_status msc_quantizer__fail_label(const struct msc_quantizer_options *o, const cJSON *found,
                                          bool takes_float, const char *where);
// quantizer_left.c. The first function fills `asked`; the second returns whether it is set for a
// site.
enum msc_status msc_quantizer__find_questions(struct msc_quantizer *q);
bool msc_quantizer__is_asked(const struct msc_quantizer *q, int32_t site);
// Marks weights with NaN or infinity as left. MSC_E_INVALID: a weight has no elements.
enum msc_status msc_quantizer__leave_infinite_weights(struct msc_quantizer *q);
// Excludes the sites that stay float (`left`). MSC_E_INVALID: no site remains.
enum msc_status msc_quantizer__drop_left(struct msc_quantizer *q);
// The observer of a kind of site if none is named.
enum msc_observer msc_quantizer__auto_observer(int kind, int32_t bits);
// How a choice of a site is observed and rounded.
struct msc_observation msc_quantizer__observation(const struct msc_quantizer *q, int32_t site,
                                                  int32_t choice);
// The `cut` of the site's scheme (msc_scheme): MSC_HARD_SWISH_CUT if the target `has_forms` and
// only hard swishes read the site; else 0.
float msc_quantizer__cut(const struct msc_quantizer *q, int32_t site);
// If the target's kernel that writes the site has a scale of its own (msc_target_fixed_scale), sets
// it and its zero point, in the range of `form`: uint8 or int8. A symmetric range is left as it is;
// the target then rounds a second time.
void msc_quantizer__fix_scale(float *scale, int32_t *zero_point, const struct msc_quantizer *q,
                              int32_t site, const struct msc_quant *form);
// True if quants of the site are needed, because the site is searched or fixed to a choice.
static inline bool msc_quantizer__is_used(const struct msc_quantizer *q, int32_t site) {
    return q->included[site] && q->fixed[site] != MSC_FIXED_FLOAT;
}
// True if the choice gives the site scales, which come from observation.
bool msc_quantizer__has_scales(const struct msc_quantizer *q, int32_t site, size_t choice);
// False if the choice stores weights in blocks, and the site is not a matrix whose rows fill them.
bool msc_quantizer__takes_blocks(const struct msc_quantizer *q, int32_t site, size_t choice);
// True if the choice is dynamic and the site is an activation.
bool msc_quantizer__is_dynamic(const struct msc_quantizer *q, int32_t site, size_t choice);
// The layout of a site's scales under a choice, without their values.
struct msc_quant msc_quantizer__form(const struct msc_quantizer *q, int32_t site, int32_t choice);
// Sets the quant of a site and choice, in the layout of msc_quantizer__form: copies scales and zero
// points of `from` into the arena, and adds references to its integers and shifts.
enum msc_status msc_quantizer__set(struct msc_quantizer *q, int32_t site, int32_t choice,
                                   const struct msc_quant *from);
// Quantises a weight with these elements: the choice's observer finds the scales, and elements are
// rounded to nearest (quantizer_weight.c). *out is owned by the caller (msc_quant_finish).
// MSC_E_NOMEM.
enum msc_status msc_quantizer__fit_elements(struct msc_quant *out, const struct msc_quantizer *q,
                                            int32_t site, int32_t choice,
                                            const struct msc_array *elements);
// Encodes a weight with these elements in the blocks of a choice; all columns count alike. *out is
// owned by the caller (msc_quant_finish). MSC_E_NOMEM.
enum msc_status msc_quantizer__fit_blocks(struct msc_quant *out, const struct msc_quantizer *q,
                                          int32_t site, int32_t choice,
                                          const struct msc_array *elements);
// quantizer_importance.c. Reads the importance file of the options, if there is one. MSC_E_INVALID:
// it has none of the weights, or an entry does not fit its weight.
enum msc_status msc_quantizer__read_importance(struct msc_quantizer *q,
                                               const struct msc_quantizer_options *o);
bool msc_quantizer__has_importance(const struct msc_quantizer *q, int32_t site);
// The second moment of a weight's inputs by the importance file: a diagonal. The caller finishes
// it.
enum msc_status msc_quantizer__importance_moment(struct msc_moment *out,
                                                 const struct msc_quantizer *q, int32_t site);
// Like msc_weight_steps_widen, but for any choices of activations.
enum msc_status msc_quantizer__widen_quant(struct msc_quant *out, const struct msc_quantizer *q,
                                           int32_t site, const struct msc_quant *quant,
                                           const struct msc_array *bias);
// Widens the scales of weights whose joints have biases that would overflow int32, if the target
// rounds biases (quantizer_widen.c).
enum msc_status msc_quantizer__widen(struct msc_quantizer *q);

#endif
