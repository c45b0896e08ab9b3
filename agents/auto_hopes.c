// Hopes of the agent `auto`: candidates are gathered once per fit by local searches in several
// draws of the model. Each hope is the best unseen candidate, improved by a descent.
#include "agents/auto.h"
#include "agents/hope.h"

#include <math.h>
#include <string.h>

// Draws of the model in which candidates are searched: the first is the mean, the others have
// rising temperatures. In each draw, searches begin at STARTS of the usual starts.
#define DRAWS 6
#define LEAST_TEMPERATURE 0.8
#define TEMPERATURE_STEP 0.3
#define STARTS (MSC_AUTO_HOPES / DRAWS)

// Collects the unseen points at which searches in the model's current draw end.
static void search_draw(struct msc_auto *a) {
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    for (size_t which = 0; which < STARTS; which++) {
        double value;
        if (msc_auto_search_from(a, which, &value) && msc_auto_is_unseen(a, a->start)) {
            memcpy(a->hopes + a->n_hopes++ * n_tasks, a->start, n_tasks * sizeof *a->hopes);
        }
    }
}

static void gather(struct msc_auto *a, struct msc_pair_model *model) {
    a->search.max_changed = SIZE_MAX;
    a->n_hopes = 0;
    for (int i = 0; i < DRAWS; i++) {
        double temperature = i == 0 ? 0.0 : LEAST_TEMPERATURE + TEMPERATURE_STEP * (i - 1);
        msc_pair_model_draw(model, a->sampler.rng, temperature * a->hope_width);
        search_draw(a);
    }
    for (size_t i = 0; i < a->n_hopes; i++) {
        a->spreads[i].n = 0;
    }
    a->hoped_at = a->n_fitted;
}

// Alternates between the lower confidence bound and the expected improvement; the latter needs a
// feasible best loss.
static struct msc_hope next_hope(struct msc_auto *a) {
    const struct msc_outcome *best =
        a->members.n_members > 0 ? msc_population_outcome(&a->members, 0) : NULL;
    struct msc_hope hope = {
        .model = &a->parts[0].model, .way = MSC_HOPE_BOUND, .width = a->hope_width};
    if (best && best->state == MSC_TRIAL_COMPLETE && a->n_hoped % 2 == 1) {
        hope.way = MSC_HOPE_IMPROVEMENT;
        hope.best_loss = msc_pair_model_linked(hope.model, best->objectives[0]);
    }
    a->n_hoped++;
    return hope;
}

bool msc_auto_hope(struct msc_auto *a, struct msc_proposal *out) {
    const struct msc_hope hope = next_hope(a);
    size_t n_tasks = a->sampler.bounds.space->n_tasks;
    double best = INFINITY;
    if (a->hoped_at != a->n_fitted) {
        gather(a, hope.model);
    }
    msc_pair_model_draw(hope.model, a->sampler.rng, 0.0);
    for (size_t i = 0; i < a->n_hopes; i++) {
        const uint32_t *choices = a->hopes + i * n_tasks;
        if (!msc_auto_is_unseen(a, choices)) {
            continue;
        }
        double spread = msc_pair_model_spread_kept(hope.model, choices, &a->spreads[i]);
        double value = msc_hope_of(&hope, msc_pair_model_value(hope.model, choices), spread);
        if (value < best) {
            best = value;
            memcpy(out->choices, choices, n_tasks * sizeof *choices);
        }
    }
    if (isinf(best)) {
        return false;
    }
    msc_hope_descend(&hope, out->choices, best, msc_auto_is_unseen, a);
    msc_pair_model_believe(hope.model, out->choices);
    return msc_sampler_note(&a->sampler, out->choices);
}
