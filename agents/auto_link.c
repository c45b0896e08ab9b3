// The links of the agent `auto`: for each measured objective, the transform (agents/link.h) under
// which its model explains the observed points best. A link is used only where the evidence for it
// is clear, and with several objectives only if there is one model: with two, the shares of
// hypervolume missed were greater with links than without.
#include "agents/auto.h"

#include <math.h>

// By how much the logarithm of the evidence for a link must exceed that for none.
#define CLEAR 8.0
// The same with several objectives: points far from a front are few, so less clear links mislead.
#define CLEAR_OF_FRONT 24.0
// The link is chosen while there are few points, and again when their number has grown by a factor.
#define LEAST_POINTS 2
#define MOST_POINTS 48
#define CHOOSE_AGAIN 1.25

// Kinds, and s relative to the greatest loss above the base's. If the greatest loss is near its
// limit s, losses near it are told apart only by an s that is as near.
static const struct msc_link links[] = {
    {MSC_LINK_EXP, 1.0},   {MSC_LINK_EXP, 0.5},     {MSC_LINK_EXP, 0.25},
    {MSC_LINK_EXP, 0.125}, {MSC_LINK_LOG, 1.00001}, {MSC_LINK_LOG, 1.0003},
    {MSC_LINK_LOG, 1.005}, {MSC_LINK_LOG, 1.05},    {MSC_LINK_LOG, 1.3},
};

static double greatest_above(const struct msc_auto_part *part) {
    const struct msc_pair_model *m = &part->model;
    const struct msc_sensitivity *s = &part->sensitivity;
    double greatest = 0.0;
    for (size_t i = 0; i < m->n_points + m->n_pending; i++) {
        greatest = fmax(greatest, m->values[i] - s->base_loss);
    }
    for (size_t e = 0; e < m->bounds->n_entries; e++) {
        double above = s->told[e] - s->base_loss;
        greatest = isfinite(above) ? fmax(greatest, above) : greatest;
    }
    return greatest;
}

static double evidence(struct msc_auto *a, struct msc_auto_part *part,
                       const struct msc_link *link) {
    part->sensitivity.link = part->model.link = *link;
    msc_sensitivity_guess(&part->sensitivity);
    msc_feature_prior_improve(&part->prior, &part->sensitivity);
    for (size_t e = 0; e < a->sampler.bounds.n_entries; e++) {
        a->is_known[e] = msc_sensitivity_is_exact(&part->sensitivity, e);
    }
    return msc_pair_model_evidence(&part->model, part->sensitivity.base_loss,
                                   part->sensitivity.guesses, a->is_known);
}

static bool is_due(const struct msc_auto *a, const struct msc_auto_part *part) {
    size_t n = part->model.n_points + part->model.n_pending;
    return (!a->front.is_used || a->n_parts == 1) &&
           a->sampler.bounds.n_entries <= MSC_AUTO_MANY_ENTRIES &&
           isfinite(part->sensitivity.base_loss) && n >= LEAST_POINTS && n <= MOST_POINTS &&
           (double)n >= CHOOSE_AGAIN * (double)part->n_linked;
}

void msc_auto_choose_link(struct msc_auto *a, struct msc_auto_part *part) {
    struct msc_link best = {0};
    if (!is_due(a, part)) {
        return;
    }
    double scale = greatest_above(part), greatest = evidence(a, part, &best);
    greatest += a->front.is_used ? CLEAR_OF_FRONT : CLEAR;
    for (size_t i = 0; scale > 0.0 && i < sizeof links / sizeof links[0]; i++) {
        const struct msc_link link = {links[i].kind, links[i].scale * scale};
        double here = evidence(a, part, &link);
        if (here > greatest) {
            greatest = here;
            best = link;
        }
    }
    part->sensitivity.link = part->model.link = best;
    part->n_linked = part->model.n_points;
}
