// Results that later calls will read, for calls that each go further in the network
// (MSC_EVAL_ONWARD). A step that no call has run yet is one without a node on which a live-out
// value depends: if a step has run, either it has a node, or all that depends on it has run.
#include "kernels/engine/schedule_internal.h"

#include "base/alloc.h"

#include <string.h>

enum msc_status msc_schedule__list_ends(struct msc_scheduled_plan *p,
                                        const struct msc_eval_trial *trial) {
    const struct msc_plan *plan = p->plan;
    for (int32_t i = 0; i < plan->n_live_out; i++) {
        int32_t slot = i < plan->n_wanted ? plan->live_out_slots[i] : MSC_NO_ID;
        if (plan->live_out[i] == MSC_NO_ID) {
            continue; // a constant of the plan
        }
        struct msc_value_number number = p->numbering.values[plan->live_out[i]];
        const struct msc_edit *edit = trial->edits && slot != MSC_NO_ID ? trial->edits[slot] : NULL;
        MSC_TRY(
            msc_numbering_edit(&p->numbering, plan->live_out[i], edit, trial->noise_seed, &number));
        MSC_TRY(msc_schedule__push_id(&p->ends, number.expr));
    }
    return MSC_OK;
}

// Goes backwards: the inputs of an expression have lower ids.
static enum msc_status find_in_plan(struct msc_scheduled_plan *p) {
    const struct msc_numbering *num = &p->numbering;
    MSC_TRY(msc_grow(&p->is_awaited, &p->is_awaited_capacity, num->n_exprs + 1,
                     sizeof(p->is_awaited[0])));
    memset(p->is_awaited, 0, num->n_exprs * sizeof(p->is_awaited[0]));
    for (size_t i = 0; i < p->ends.n; i++) {
        p->is_awaited[p->ends.items[i]] = true;
    }
    for (size_t id = num->n_exprs; id-- > 0;) {
        const struct msc_expr *expr = &num->exprs[id];
        bool has_node = p->nodes[id * (size_t)p->n_columns] != MSC_NO_ID;
        for (int32_t i = 0; p->is_awaited[id] && !has_node && i < expr->n_inputs; i++) {
            p->is_awaited[num->inputs[expr->first_input + i].expr] = true;
        }
    }
    return MSC_OK;
}

enum msc_status msc_schedule__find_awaited(struct msc_schedule *s) {
    for (int i = 0; msc_schedule__is_onward(s) && i < s->options.n_plans; i++) {
        MSC_TRY(s->plans[i].n_columns > 0 ? find_in_plan(&s->plans[i]) : MSC_OK);
    }
    return MSC_OK;
}
