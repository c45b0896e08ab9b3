// Warns of densities that rounding to whole units makes ineffective.
#include "tools/pruner_internal.h"

#include <stdio.h>

// Is the choice allowed for the part, or its fixed one?
static bool has_choice(const struct msc_pruner *p, int32_t part, size_t choice) {
    const struct msc_prune_fixed *fixed = msc_pruner__find_fixed(p, part);
    return p->groups[part].is_included ? msc_pruner__allowed(p, part) >> choice & 1
                                       : fixed && fixed->choice == (int32_t)choice;
}

// Counts the groups of which a density keeps all units (or would keep none), and finds the first.
static int32_t count_rounded(int32_t *first, const struct msc_pruner *p, size_t choice,
                             bool keeps_all) {
    int32_t n = 0;
    for (int32_t g = p->channels.n_groups - 1; g >= 0; g--) {
        double density = p->options->choices[choice].density;
        enum msc_rounded rounded = msc_pruner__rounded(p, g, density);
        if (has_choice(p, g, choice) &&
            rounded == (keeps_all ? MSC_ROUNDED_TO_ALL : MSC_ROUNDED_TO_NONE)) {
            *first = g;
            n++;
        }
    }
    return n;
}

static void tell_rounded(const struct msc_pruner *p, const struct msc_log *log, size_t choice,
                         bool keeps_all) {
    int32_t first, n = count_rounded(&first, p, choice, keeps_all);
    if (n == 0) {
        return;
    }
    const struct msc_channel_group *group = &p->channels.groups[first];
    char others[32] = "";
    if (n > 1) {
        snprintf(others, sizeof others, " and %d other group%s", (int)n - 1, n > 2 ? "s" : "");
    }
    msc_log(log, MSC_LOG_WARNING,
            "density %s %s of %s (%d units)%s%s: counts are rounded to whole units, and to "
            "multiples of round_to (%lld channels) if there are twice as many",
            p->options->choices[choice].label, keeps_all ? "keeps every unit" : "rounds to no unit",
            group->name, (int)group->n_units, others,
            keeps_all ? "" : ", so the smallest possible count is kept",
            (long long)p->options->round_to);
}

void msc_pruner_tell_rounded(const struct msc_pruner *p, const struct msc_log *log) {
    for (size_t i = 0; i < p->options->n_all; i++) {
        const struct msc_prune_choice *c = &p->options->choices[i];
        if (!c->is_sparse && c->density < 1) {
            tell_rounded(p, log, i, true);
            tell_rounded(p, log, i, false);
        }
    }
}
