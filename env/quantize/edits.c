// Makes the edits of points: those of the sites that the trial chooses, and those that are the same
// in every trial.
#include "base/alloc.h"
#include "env/quantize/internal.h"
#include "tools/strategy.h"

// The edits that are the same in every trial: those of earlier strategies, then sites fixed to a
// choice.
enum msc_status msc_quantize__build_fixed(struct msc_env *env, struct msc_quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    const struct msc_sites *sites = msc_quantizer_sites(z->quantizer);
    z->runs.n_slots = (size_t)sites->n_slots;
    z->fixed = msc_arena_array(msc_env_arena(env), z->runs.n_slots + 1, sizeof(z->fixed[0]));
    MSC_TRY(MSC_ALLOCATED(z->fixed));
    if (host->base) {
        MSC_TRY(msc_strategy_apply_to_any(host->base, host->graph, sites, z->fixed));
        MSC_TRY(msc_strategy_check_weights(host->base, msc_env_whole_host(env)->graph));
    }
    for (int32_t i = 0; i < sites->n_sites; i++) {
        int32_t choice = msc_quantizer_fixed_choice(z->quantizer, i);
        if (!msc_quantizer_is_included(z->quantizer, i) || choice == MSC_NO_ID) {
            continue;
        }
        for (int32_t k = 0; k < sites->sites[i].n_slots; k++) {
            int32_t slot = sites->sites[i].slots[k];
            z->fixed[slot] =
                msc_edit_at_slot(msc_quantizer_edit(z->quantizer, i, choice), &sites->slots[slot]);
        }
    }
    return MSC_OK;
}

enum msc_status msc_quantize__make_bias_edits(struct msc_env *env, struct msc_quantize *z) {
    msc_bias_edits_destroy(z->bias_edits);
    z->bias_edits = NULL;
    return msc_bias_edits_create(&z->bias_edits, msc_env_host(env)->graph,
                                 msc_quantizer_sites(z->quantizer));
}

// The quantizer's choice for a choice of a task.
static int32_t quantizer_choice(const struct msc_quantize *z, int32_t task, uint32_t choice) {
    return (int32_t)z->space.choices_of_task[task][choice];
}

void msc_quantize__fill_sites(const struct msc_quantize *z, const uint32_t choices[],
                              const struct msc_edit *edits[]) {
    const struct msc_slot *slots = msc_quantizer_sites(z->quantizer)->slots;
    for (size_t s = 0; s < z->runs.n_slots; s++) {
        int32_t task = msc_quantize_task_of_slot(&z->space, (int32_t)s);
        edits[s] =
            task == MSC_NO_ID
                ? z->fixed[s]
                : msc_edit_at_slot(msc_quantizer_edit(z->quantizer, z->space.site_of_slot[s],
                                                      quantizer_choice(z, task, choices[task])),
                                   &slots[s]);
    }
}

enum msc_status msc_quantize__fill(struct msc_quantize *z, const uint32_t choices[],
                                   const struct msc_edit *edits[]) {
    msc_quantize__fill_sites(z, choices, edits);
    return msc_bias_edits_fill(z->bias_edits, edits);
}

enum msc_status msc_quantize__fill_alone(struct msc_quantize *z, const uint32_t choices[],
                                         size_t task, const struct msc_edit *edits[]) {
    msc_quantize__fill_sites(z, choices, edits);
    for (size_t s = 0; s < z->runs.n_slots; s++) {
        if (msc_quantize_task_of_slot(&z->space, (int32_t)s) != (int32_t)task) {
            edits[s] = NULL;
        }
    }
    return msc_bias_edits_fill(z->bias_edits, edits); // of the weights that are edited
}

int32_t msc_quantize__choice_of_site(const struct msc_quantize *z, int32_t site,
                                     const uint32_t choices[]) {
    int32_t task = z->space.task_of_site[site];
    return task == MSC_NO_ID ? msc_quantizer_fixed_choice(z->quantizer, site)
                             : quantizer_choice(z, task, choices[task]);
}
