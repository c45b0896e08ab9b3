// An environment as a shared library: one task with two choices. The build makes several
// versions, with different ABI numbers and symbol names, and with or without printing.
#include <mscgym/env/api/env.h>

#include <stdio.h>

extern const struct msc_env_def *const PLUGIN_SYMBOL;

struct coin {
    double price;
};

static const char *const labels[] = {"heads", "tails"};
static const uint32_t order[] = {0, 1};
static const struct msc_task task = {
    .name = "side", .n_choices = 2, .labels = labels, .most_expensive_first = order};
static const struct msc_metric metric = {.name = "loss"}; // without optional members
static const struct msc_space space = {
    .n_tasks = 1, .tasks = &task, .n_metrics = 1, .metrics = &metric};

static enum msc_status coin_init(struct msc_env *env) {
    (void)env;
    if (PLUGIN_PRINTS) {
        printf("made\n"); // not flushed: it stays in the buffer
    }
    return MSC_OK;
}

static const struct msc_space *coin_space(const struct msc_env *env) {
    (void)env;
    return &space;
}

static enum msc_status coin_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    const struct coin *coin = msc_env_state(env);
    for (size_t i = 0; i < e->n; i++) {
        struct msc_trial *trial = e->trials[i];
        trial->outcome.metrics[0] = trial->proposal.choices[0] * coin->price;
    }
    if (PLUGIN_PRINTS) {
        printf("evaluating\n");
        fflush(stdout);
    }
    return MSC_OK;
}

static const struct msc_param coin_params[] = {
    {.name = "price",
     .help = "of tails",
     .offset = offsetof(struct coin, price),
     .type = MSC_PARAM_F64,
     .number = 2},
    {0},
};

static const struct msc_env_def coin = {
    .abi = PLUGIN_ABI,
    .name = "coin",
    .summary = "heads or tails",
    .version = 1,
    .state_size = sizeof(struct coin),
    .params = coin_params,
    .init = coin_init,
    .space = coin_space,
    .evaluate = coin_evaluate,
};

const struct msc_env_def *const PLUGIN_SYMBOL = &coin;
