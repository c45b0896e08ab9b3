// An environment that answers from a file of measured points or of additive terms. Use it to
// compare searches, since its optimum can be computed, and to search among points that were
// measured elsewhere.
#include "env/table_file.h"

#include "base/file.h"
#include "base/json.h"
#include "env/api/env.h"

#include <math.h>

struct table_env {
    const char *file;
    const struct cJSON *metrics;
    struct msc_table_file table;
};

static const struct msc_param table_params[] = {
    {.name = "file",
     .help = "file that answers trials: JSON, or .csv with one row per point (docs/table.md)",
     .offset = offsetof(struct table_env, file),
     .type = MSC_PARAM_TEXT},
    {.name = "metrics",
     .help = "columns of a .csv file to use as metrics (default: distill_loss)",
     .offset = offsetof(struct table_env, metrics),
     .type = MSC_PARAM_OBJECT},
    {0},
};

static enum msc_status table_init(struct msc_env *env) {
    struct table_env *t = msc_env_state(env);
    struct msc_arena *arena = msc_env_arena(env);
    if (!t->file) {
        return MSC_FAIL(MSC_E_INVALID,
                        "env: \"file\" is missing, expected the path of a table (docs/table.md)");
    }
    const char *path = msc_path_join(arena, msc_env_host(env)->folder, t->file);
    return path ? msc_table_file_load(&t->table, path, t->metrics, arena)
                : MSC_FAIL(MSC_E_NOMEM, "table: out of memory");
}

static const struct msc_space *table_space(const struct msc_env *env) {
    const struct table_env *t = msc_env_state(env);
    return &t->table.space;
}

static void look_up(const struct msc_table_file *table, struct msc_trial *trial) {
    struct msc_outcome *outcome = &trial->outcome;
    if (!msc_table_file_measure(table, trial->proposal.choices, outcome->metrics)) {
        msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "the table has no such point");
        return;
    }
    for (size_t i = 0; i < table->n_measured; i++) {
        if (!isnan(outcome->metrics[i])) {
            return;
        }
    }
    if (table->n_measured > 0) {
        msc_outcome_fail(outcome, MSC_CAUSE_TRIAL, "the table lists this point as failed");
    }
}

static enum msc_status table_evaluate(struct msc_env *env, const struct msc_evaluation *e) {
    const struct table_env *t = msc_env_state(env);
    for (size_t i = 0; i < e->n; i++) {
        look_up(&t->table, e->trials[i]);
        if (e->finished) {
            e->finished(e->payload, i);
        }
    }
    return MSC_OK;
}

static struct msc_hash table_identity(const struct msc_env *env) {
    const struct table_env *t = msc_env_state(env);
    return t->table.hash;
}

static enum msc_status table_describe(const struct msc_env *env, struct cJSON *object) {
    char text[MSC_HASH_TEXT_BYTES];
    return msc_json_add_text(object, "table", msc_hash_format(text, table_identity(env)));
}

static void table_finish(struct msc_env *env) {
    struct table_env *t = msc_env_state(env);
    msc_table_file_finish(&t->table);
}

const struct msc_env_def msc_env_table = {
    .abi = MSC_ENV_ABI,
    .name = "table",
    .summary = "answers from a file of measured points or additive terms; needs no model",
    .version = 1,
    .state_size = sizeof(struct table_env),
    .params = table_params,
    .init = table_init,
    .space = table_space,
    .evaluate = table_evaluate,
    .identity = table_identity,
    .describe = table_describe,
    .finish = table_finish,
};
