// Random search: proposes distinct feasible points and ignores outcomes.
#include "agents/agent.h"
#include "agents/sampler.h"

struct random_search {
    struct msc_sampler sampler;
    bool is_done;
};

static const struct msc_param random_params[] = {{0}};

static enum msc_status random_init(struct msc_agent *agent) {
    struct random_search *search = msc_agent_state(agent);
    return msc_sampler_init(&search->sampler, msc_agent_arena(agent), msc_agent_space(agent),
                            msc_agent_goal(agent), msc_agent_rng(agent));
}

static enum msc_status random_ask(struct msc_agent *agent, struct msc_proposal out[], size_t max,
                                  size_t *n) {
    struct random_search *search = msc_agent_state(agent);
    while (*n < max && !search->is_done) {
        if (msc_sampler_draw(&search->sampler, out[*n].choices)) {
            (*n)++;
        } else {
            search->is_done = true;
        }
    }
    return MSC_OK;
}

// Notes the baselines, so that they are not proposed again; other points were noted when drawn.
static enum msc_status random_tell(struct msc_agent *agent, const struct msc_trial *trial) {
    struct random_search *search = msc_agent_state(agent);
    msc_sampler_note(&search->sampler, trial->proposal.choices);
    return MSC_OK;
}

static bool random_done(const struct msc_agent *agent) {
    const struct random_search *search = msc_agent_state(agent);
    return search->is_done;
}

static struct msc_agent_left random_left(const struct msc_agent *agent) {
    const struct random_search *search = msc_agent_state(agent);
    return msc_sampler_left(&search->sampler);
}

const struct msc_agent_def msc_agent_random = {
    .abi = MSC_AGENT_ABI,
    .name = "random",
    .summary = "distinct random points within the bounds; the baseline for every other agent",
    .version = 1,
    .state_size = sizeof(struct random_search),
    .params = random_params,
    .init = random_init,
    .ask = random_ask,
    .tell = random_tell,
    .done = random_done,
    .left = random_left,
};
