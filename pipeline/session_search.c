#include "pipeline/session_search.h"

#include "base/json.h"
#include "checks/held_out.h"
#include "model/program_id.h"

static void tell_progress(void *payload, const struct msc_search_progress *progress) {
    const struct msc_session_observers *observers = payload;
    msc_news_progress(observers->news, progress);
}

// If bounds by drop are checked on the validation samples at the end, the best trial so far may
// still be left out, so its files are written only then.
static enum msc_status take_best(void *payload, const struct msc_trial *trial) {
    const struct msc_session_observers *observers = payload;
    const struct msc_session *s = observers->news->session;
    const struct msc_held_out_options held_out = {
        .env = s->env, .goal = &s->goal, .drops = &s->drops};
    msc_news_best(observers->news, trial);
    return observers->publisher && !msc_held_out_has(&held_out)
               ? msc_publisher_take_best(observers->publisher, trial)
               : MSC_OK;
}

void msc_session_search_options(struct msc_search_options *o, const struct msc_session *s,
                                const cJSON *config, struct msc_session_observers *observers) {
    const struct msc_config_entry *e = s->entry;
    *o = (struct msc_search_options){
        .env = s->env,
        .agent_config = e->agent,
        .agent_folder = e->folder,
        .goal = &s->goal,
        .drops = &s->drops,
        .record_path = e->record,
        .program = msc_program_name(),
        .numerics = msc_setup_numerics(s->setup),
        .config = config,
        .more = s->sameness,
        .free_keys = msc_config_free_keys,
        .seed = e->seed,
        .parallel = e->parallel,
        .race = &s->race,
        .budget = e->budget,
        .trial_seconds = e->trial_seconds,
        .quiet_seconds = e->quiet_seconds,
        .accept_new_numerics = s->setup->options.accept_new_numerics,
        .warm_start = s->setup->options.warm_start,
        .retry_failed = s->setup->options.retry_failed,
        .log = s->setup->log,
        .cancel = s->setup->options.cancel,
        .worker = s->setup->options.worker,
        .callbacks = {.payload = observers, .progress = tell_progress, .best = take_best},
    };
}
