#include "agents/auto_remarks.h"

#include "agents/auto.h"
#include "agents/numbers.h"
#include "base/str.h"

#include <math.h>
#include <string.h>

// A choice is named if it breaks a point with at least this probability; at most MOST_NAMED are.
#define SURE 0.8
#define MOST_NAMED 4
// Two tasks act together if, for a pair of their choices, the effect of both differs from the sum
// of their effects by at least this share of the sizes of both; at most MOST_PAIRS pairs are named.
#define CLEAR_SHARE 0.1
#define MOST_PAIRS 3

static const char *unit_of(const struct msc_metric *metric) {
    return metric->unit ? metric->unit : "";
}

static void append_value(struct msc_str *out, const struct msc_metric *metric, double value,
                         const char *format) {
    msc_str_printf(out, format, value);
    msc_str_printf(out, "%s%s", unit_of(metric)[0] ? " " : "", unit_of(metric));
}

// ---- The link ---------------------------------------------------------------------------------

static void remark_link(const struct msc_auto_part *part, const struct msc_metric *metric,
                        struct msc_str *out) {
    const struct msc_link *link = &part->model.link;
    if (link->kind == MSC_LINK_NONE) {
        return;
    }
    bool is_exp = link->kind == MSC_LINK_EXP;
    msc_str_printf(out,
                   "losses saturate: choices add up after the transform %s, where d is how "
                   "much worse %s is than that of the most expensive plan and s is ",
                   is_exp ? "s (exp(d / s) - 1)" : "-s log(1 - d / s)", metric->name);
    append_value(out, metric, link->scale, "%.3g");
    msc_str_char(out, '\n');
}

static void remark_given(const struct msc_auto_part *part, const struct msc_metric *metric,
                         struct msc_str *out) {
    if (part->prior.given) {
        msc_str_printf(out,
                       "the environment gives %s of each single choice, measured before the first "
                       "trial\n",
                       metric->name);
    }
}

// ---- Tasks that act together ------------------------------------------------------------------

struct pair {
    size_t tasks[2];
    uint32_t choices[2];
    double sum, both; // effects of the choices: each alone, added; and of both together
};

static double excess(const struct pair *pair) {
    return fabs(pair->both - pair->sum);
}

// Keeps the pairs of greatest excess, one for each two tasks, in decreasing order.
static void keep_pair(struct pair kept[], size_t *n, const struct pair *pair) {
    size_t at = 0, end;
    while (at < *n && excess(&kept[at]) >= excess(pair)) {
        if (memcmp(kept[at].tasks, pair->tasks, sizeof pair->tasks) == 0) {
            return;
        }
        at++;
    }
    for (end = at; end < *n; end++) { // a weaker pair of the same tasks is replaced
        if (memcmp(kept[end].tasks, pair->tasks, sizeof pair->tasks) == 0) {
            break;
        }
    }
    *n += end == *n && *n < MOST_PAIRS;
    end = end < MOST_PAIRS ? end : MOST_PAIRS - 1;
    if (at < MOST_PAIRS) {
        memmove(kept + at + 1, kept + at, (end - at) * sizeof *kept);
        kept[at] = *pair;
    }
}

// Compares a choice of one task with all choices of later tasks.
static void gather_pairs(struct pair kept[], size_t *n, const struct msc_pair_model *m,
                         struct pair pair, const double field[]) {
    const struct msc_exact_bounds *bounds = m->bounds;
    double first = m->terms[msc_exact_bounds_entry(bounds, pair.tasks[0], pair.choices[0])];
    for (size_t t = pair.tasks[0] + 1; t < bounds->space->n_tasks; t++) {
        for (uint32_t c = 0; c < bounds->space->tasks[t].n_choices; c++) {
            size_t e = msc_exact_bounds_entry(bounds, t, c);
            double one = msc_link_inverse(&m->link, first),
                   other = msc_link_inverse(&m->link, m->terms[e]);
            pair.tasks[1] = t;
            pair.choices[1] = c;
            pair.sum = msc_link_inverse(&m->link, first + m->terms[e]);
            pair.both = msc_link_inverse(&m->link, first + m->terms[e] + field[e]);
            if (excess(&pair) > CLEAR_SHARE * (fabs(one) + fabs(other))) {
                keep_pair(kept, n, &pair);
            }
        }
    }
}

static void append_choice(struct msc_str *out, const struct msc_space *space,
                          const struct pair *pair, int which) {
    const struct msc_task *task = &space->tasks[pair->tasks[which]];
    msc_str_printf(out, "%s at %s", task->name, task->labels[pair->choices[which]]);
}

static void append_pair(struct msc_str *out, const struct msc_space *space,
                        const struct msc_auto_part *part, const struct pair *pair) {
    const struct msc_metric *metric = &space->metrics[part->metric];
    append_choice(out, space, pair, 0);
    msc_str_append(out, " and ");
    append_choice(out, space, pair, 1);
    msc_str_printf(out, " act together: both change %s by about ", metric->name);
    append_value(out, metric, part->sign * pair->both, "%+.3g");
    msc_str_append(out, part->model.link.kind == MSC_LINK_NONE ? "; the sum of their effects is "
                                                               : "; by the transform it would be ");
    append_value(out, metric, part->sign * pair->sum, "%+.3g");
    msc_str_char(out, '\n');
}

static void remark_pairs(struct msc_auto *a, struct msc_auto_part *part,
                         const struct msc_space *space, struct msc_str *out) {
    struct msc_pair_model *m = &part->model;
    struct pair kept[MOST_PAIRS];
    size_t n = 0;
    if (msc_pair_model_is_additive(m)) {
        msc_str_printf(out, "effects on %s add up%s: no tasks were seen to act together\n",
                       space->metrics[part->metric].name,
                       m->link.kind == MSC_LINK_NONE ? "" : " after the transform");
        return;
    }
    if (m->n_points == 0) {
        return;
    }
    msc_pair_model_draw(m, a->sampler.rng, 0.0); // the mean
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            const struct pair pair = {.tasks = {t}, .choices = {c}};
            memset(a->search.shifted, 0, a->sampler.bounds.n_entries * sizeof *a->search.shifted);
            if (msc_pair_model_add_terms(m, t, c, 1.0, a->search.shifted)) {
                gather_pairs(kept, &n, m, pair, a->search.shifted);
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        append_pair(out, space, part, &kept[i]);
    }
}

// ---- Failures ---------------------------------------------------------------------------------

static void remark_choices(struct msc_auto *a, const struct msc_space *space, struct msc_str *out) {
    int n = 0;
    for (size_t t = 0; t < space->n_tasks; t++) {
        for (uint32_t c = 0; c < space->tasks[t].n_choices; c++) {
            size_t e = msc_exact_bounds_entry(&a->sampler.bounds, t, c);
            double breaks = msc_chance_of_break(&a->chance, e);
            if (breaks >= SURE && n++ < MOST_NAMED) {
                msc_str_printf(out, "plans with %s at %s fail (probability %.2f)\n",
                               space->tasks[t].name, space->tasks[t].labels[c], breaks);
            }
        }
    }
    if (n > MOST_NAMED) {
        msc_str_printf(out, "%d more choices make plans fail\n", n - MOST_NAMED);
    }
}

static void remark_failures(struct msc_auto *a, const struct msc_space *space,
                            struct msc_str *out) {
    if (a->chance.n_failed == 0) {
        return;
    }
    msc_str_printf(out, "%llu of %llu plan%s could not be measured\n",
                   (unsigned long long)a->chance.n_failed, (unsigned long long)a->chance.n_told,
                   a->chance.n_told == 1 ? "" : "s");
    if (a->base_fails) {
        msc_str_append(out, "the most expensive plan fails: plans are compared with their "
                            "neighbours instead\n");
    }
    remark_choices(a, space, out);
}

// ---- All --------------------------------------------------------------------------------------

void msc_auto_remarks(struct msc_agent *agent, struct msc_str *out) {
    struct msc_auto *a = msc_agent_state(agent);
    const struct msc_space *space = msc_agent_space(agent);
    for (size_t i = 0; i < a->n_parts; i++) {
        remark_link(&a->parts[i], &space->metrics[a->parts[i].metric], out);
        remark_given(&a->parts[i], &space->metrics[a->parts[i].metric], out);
    }
    for (size_t i = 0; i < a->n_parts && !a->base_fails; i++) {
        remark_pairs(a, &a->parts[i], space, out);
    }
    remark_failures(a, space, out);
}
