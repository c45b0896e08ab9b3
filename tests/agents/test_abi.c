// Compares the layout covered by the ABI numbers of agents, environments and operators with the
// files abi/agent_NUMBER.txt, abi/env_NUMBER.txt and abi/operators_NUMBER.txt: sizes, offsets and
// limits. If this test fails, the layout has changed: raise the number and write the new file with
// MSC_UPDATE_GOLDEN=1. The file of a released number never changes.
#include "agents/agent.h"
#include "base/file.h"
#include "base/str.h"
#include "env/api/env.h"
#include "graph/operators.h"
#include "tests/msc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct row {
    const char *name;
    size_t value, size;
};

#define SIZE(type)                                                                                 \
    { #type, sizeof(struct type), 0 }
#define AT(type, member)                                                                           \
    { #type "." #member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member) }
#define IS(constant)                                                                               \
    { #constant, (size_t)(constant), 0 }

static const struct row shared[] = {
    SIZE(msc_task),
    AT(msc_task, name),
    AT(msc_task, n_choices),
    AT(msc_task, labels),
    AT(msc_task, most_expensive_first),
    AT(msc_task, features),
    AT(msc_task, choice_features),
    SIZE(msc_cost_factor),
    AT(msc_cost_factor, task),
    AT(msc_cost_factor, by_choice),
    SIZE(msc_cost_term),
    AT(msc_cost_term, scale),
    AT(msc_cost_term, n_factors),
    AT(msc_cost_term, factors),
    SIZE(msc_cost),
    AT(msc_cost, metric),
    AT(msc_cost, constant),
    AT(msc_cost, n_terms),
    AT(msc_cost, terms),
    SIZE(msc_metric),
    AT(msc_metric, name),
    AT(msc_metric, unit),
    AT(msc_metric, help),
    AT(msc_metric, is_maximised),
    AT(msc_metric, is_exact),
    AT(msc_metric, is_measured),
    SIZE(msc_baseline),
    AT(msc_baseline, label),
    AT(msc_baseline, choices),
    SIZE(msc_space),
    AT(msc_space, n_tasks),
    AT(msc_space, tasks),
    AT(msc_space, n_features),
    AT(msc_space, feature_names),
    AT(msc_space, n_choice_features),
    AT(msc_space, choice_feature_names),
    AT(msc_space, n_metrics),
    AT(msc_space, metrics),
    AT(msc_space, n_costs),
    AT(msc_space, costs),
    AT(msc_space, n_baselines),
    AT(msc_space, baselines),
    AT(msc_space, n_neighbours),
    AT(msc_space, neighbours),
    SIZE(msc_proposal),
    AT(msc_proposal, choices),
    AT(msc_proposal, parent),
    AT(msc_proposal, bound),
    AT(msc_proposal, probe),
    AT(msc_proposal, origin),
    SIZE(msc_outcome),
    AT(msc_outcome, state),
    AT(msc_outcome, cause),
    AT(msc_outcome, metrics),
    AT(msc_outcome, objectives),
    AT(msc_outcome, violation),
    AT(msc_outcome, reason),
    AT(msc_outcome, time_us),
    AT(msc_outcome, reuse_ratio),
    SIZE(msc_trial),
    AT(msc_trial, id),
    AT(msc_trial, proposal),
    AT(msc_trial, outcome),
    SIZE(msc_objective),
    AT(msc_objective, metric),
    AT(msc_objective, is_maximised),
    SIZE(msc_bound),
    AT(msc_bound, metric),
    AT(msc_bound, min),
    AT(msc_bound, max),
    SIZE(msc_goal),
    AT(msc_goal, n_objectives),
    AT(msc_goal, objectives),
    AT(msc_goal, n_bounds),
    AT(msc_goal, bounds),
    SIZE(msc_param),
    AT(msc_param, name),
    AT(msc_param, help),
    AT(msc_param, offset),
    AT(msc_param, type),
    AT(msc_param, number),
    AT(msc_param, text),
    AT(msc_param, min),
    AT(msc_param, max),
    AT(msc_param, names),
    AT(msc_param, unit),
    IS(MSC_PARAM_BOOL),
    IS(MSC_PARAM_I64),
    IS(MSC_PARAM_F64),
    IS(MSC_PARAM_TEXT),
    IS(MSC_PARAM_ENUM),
    IS(MSC_PARAM_DURATION),
    IS(MSC_PARAM_JSON),
    IS(MSC_PARAM_WORD),
    IS(MSC_PARAM_OBJECT),
    IS(MSC_TRIAL_COMPLETE),
    IS(MSC_TRIAL_PRUNED),
    IS(MSC_TRIAL_INFEASIBLE),
    IS(MSC_TRIAL_FAILED),
    IS(MSC_CAUSE_NONE),
    IS(MSC_CAUSE_TRIAL),
    IS(MSC_CAUSE_ENVIRONMENT),
    IS(MSC_MAX_METRICS),
    IS(MSC_MAX_OBJECTIVES),
    IS(MSC_MAX_BOUNDS),
    IS(MSC_REASON_BYTES),
    IS(MSC_E_INVALID),
    IS(MSC_E_NOMEM),
    IS(MSC_E_IO),
    IS(MSC_E_FORMAT),
    IS(MSC_E_UNSUPPORTED),
    IS(MSC_E_DEVICE),
    IS(MSC_E_STATE),
    IS(MSC_E_NOT_FOUND),
    IS(MSC_E_CANCELLED),
};

static const struct row of_agents[] = {
    SIZE(msc_agent_left),
    AT(msc_agent_left, n),
    AT(msc_agent_left, is_exact),
    AT(msc_agent_left, n_plan),
    SIZE(msc_agent_def),
    AT(msc_agent_def, abi),
    AT(msc_agent_def, name),
    AT(msc_agent_def, summary),
    AT(msc_agent_def, version),
    AT(msc_agent_def, state_size),
    AT(msc_agent_def, params),
    AT(msc_agent_def, init),
    AT(msc_agent_def, ask),
    AT(msc_agent_def, tell),
    AT(msc_agent_def, done),
    AT(msc_agent_def, left),
    AT(msc_agent_def, effort),
    AT(msc_agent_def, assemble),
    AT(msc_agent_def, remarks),
    AT(msc_agent_def, finish),
    SIZE(msc_rng),
    AT(msc_rng, pcg),
};

static const struct row of_environments[] = {
    SIZE(msc_env_host),
    AT(msc_env_host, abi),
    AT(msc_env_host, graph),
    AT(msc_env_host, dataset),
    AT(msc_env_host, validation),
    AT(msc_env_host, backend),
    AT(msc_env_host, n_threads),
    AT(msc_env_host, memory_bytes),
    AT(msc_env_host, base),
    AT(msc_env_host, parameters_path),
    AT(msc_env_host, parameters_required),
    AT(msc_env_host, folder),
    AT(msc_env_host, log),
    AT(msc_env_host, cancel),
    SIZE(msc_evaluation),
    AT(msc_evaluation, trials),
    AT(msc_evaluation, n),
    AT(msc_evaluation, finished),
    AT(msc_evaluation, payload),
    AT(msc_evaluation, bounds),
    SIZE(msc_env_batches),
    AT(msc_env_batches, n),
    AT(msc_env_batches, n_terms),
    AT(msc_env_batches, n_sums),
    SIZE(msc_part_found),
    AT(msc_part_found, n_batches),
    AT(msc_part_found, cause),
    AT(msc_part_found, reason),
    AT(msc_part_found, time_us),
    AT(msc_part_found, reuse_ratio),
    SIZE(msc_env_part),
    AT(msc_env_part, first),
    AT(msc_env_part, end),
    AT(msc_env_part, terms),
    AT(msc_env_part, kind),
    AT(msc_env_part, found),
    SIZE(msc_env_def),
    AT(msc_env_def, abi),
    AT(msc_env_def, name),
    AT(msc_env_def, summary),
    AT(msc_env_def, version),
    AT(msc_env_def, needs),
    AT(msc_env_def, decides),
    AT(msc_env_def, state_size),
    AT(msc_env_def, params),
    AT(msc_env_def, complete),
    AT(msc_env_def, metric),
    AT(msc_env_def, init),
    AT(msc_env_def, space),
    AT(msc_env_def, runs),
    AT(msc_env_def, evaluate),
    AT(msc_env_def, batches),
    AT(msc_env_def, evaluate_part),
    AT(msc_env_def, partial_loss),
    AT(msc_env_def, reference),
    AT(msc_env_def, edits),
    AT(msc_env_def, reevaluate),
    AT(msc_env_def, identity),
    AT(msc_env_def, describe),
    AT(msc_env_def, save),
    AT(msc_env_def, restore),
    AT(msc_env_def, finish),
    SIZE(msc_hash),
    AT(msc_hash, low),
    AT(msc_hash, high),
    SIZE(msc_log),
    AT(msc_log, level),
    AT(msc_log, write),
    AT(msc_log, payload),
    SIZE(msc_cancel),
    AT(msc_cancel, level),
    AT(msc_cancel, beats),
    IS(MSC_ENV_NEEDS_GRAPH),
    IS(MSC_ENV_NEEDS_DATASET),
    IS(MSC_ENV_NEEDS_BACKEND),
    IS(MSC_PART_NEXT),
    IS(MSC_PART_ALONE),
    IS(MSC_PART_FOLD),
    IS(MSC_REEVALUATE_VALIDATION),
    IS(MSC_REEVALUATE_NOISE),
    IS(MSC_REEVALUATE_ALONE),
    IS(MSC_REEVALUATE_ALL),
    IS(MSC_REEVALUATE_MEMORY),
    IS(MSC_REEVALUATE_EFFORT),
};

static void write_rows(struct msc_str *out, const struct row rows[], size_t n) {
    for (size_t i = 0; i < n; i++) {
        msc_str_printf(out, "%s %lld", rows[i].name, (long long)rows[i].value);
        if (rows[i].size > 0) {
            msc_str_printf(out, " %zu", rows[i].size);
        }
        msc_str_char(out, '\n');
    }
}

static void check_layout(const char *kind, unsigned number, const struct row rows[], size_t n) {
    char path[512];
    char *expected = NULL;
    size_t length = 0;
    struct msc_str text = {0};
    if (sizeof(void *) != 8) {
        print_message("skipped: layouts are kept of 64 bits\n");
        skip();
    }
    write_rows(&text, rows, n);
    write_rows(&text, shared, sizeof shared / sizeof shared[0]);
    snprintf(path, sizeof path, "%s/agents/abi/%s_%u.txt", MSC_TESTS_FOLDER, kind, number);
    if (getenv("MSC_UPDATE_GOLDEN") && access(path, F_OK) != 0) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(msc_str_text(&text), file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
    assert_ok(msc_file_read(&expected, &length, path));
    assert_string_equal(msc_str_text(&text), expected);
    msc_free(expected);
    msc_str_finish(&text);
}

static void test_agents_abi__agents(void **state) {
    (void)state;
    check_layout("agent", MSC_AGENT_ABI, of_agents, sizeof of_agents / sizeof of_agents[0]);
}

static const struct row of_operators[] = {
    SIZE(msc_operator_tensor),
    AT(msc_operator_tensor, dtype),
    AT(msc_operator_tensor, n_dims),
    AT(msc_operator_tensor, dims),
    AT(msc_operator_tensor, data),
    SIZE(msc_operator_attr),
    AT(msc_operator_attr, name),
    AT(msc_operator_attr, type),
    AT(msc_operator_attr, value),
    SIZE(msc_operator_call),
    AT(msc_operator_call, joint),
    AT(msc_operator_call, domain),
    AT(msc_operator_call, op),
    AT(msc_operator_call, version),
    AT(msc_operator_call, n_attrs),
    AT(msc_operator_call, attrs),
    AT(msc_operator_call, n_inputs),
    AT(msc_operator_call, inputs),
    AT(msc_operator_call, n_outputs),
    AT(msc_operator_call, outputs),
    AT(msc_operator_call, allocate),
    AT(msc_operator_call, host),
    SIZE(msc_operator_def),
    AT(msc_operator_def, domain),
    AT(msc_operator_def, op),
    AT(msc_operator_def, infer),
    AT(msc_operator_def, compute),
    SIZE(msc_operators_def),
    AT(msc_operators_def, abi),
    AT(msc_operators_def, name),
    AT(msc_operators_def, summary),
    AT(msc_operators_def, n_operators),
    AT(msc_operators_def, operators),
    IS(MSC_MAX_DIMS),
    IS(MSC_DTYPE_F32),
    IS(MSC_DTYPE_F16),
    IS(MSC_DTYPE_BF16),
    IS(MSC_DTYPE_F64),
    IS(MSC_DTYPE_I8),
    IS(MSC_DTYPE_I16),
    IS(MSC_DTYPE_I32),
    IS(MSC_DTYPE_I64),
    IS(MSC_DTYPE_U8),
    IS(MSC_DTYPE_U16),
    IS(MSC_DTYPE_U32),
    IS(MSC_DTYPE_U64),
    IS(MSC_DTYPE_BOOL),
};

static void test_agents_abi__operators(void **state) {
    (void)state;
    check_layout("operators", MSC_OPERATORS_ABI, of_operators,
                 sizeof of_operators / sizeof of_operators[0]);
}

static void test_agents_abi__environments(void **state) {
    (void)state;
    check_layout("env", MSC_ENV_ABI, of_environments,
                 sizeof of_environments / sizeof of_environments[0]);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agents_abi__agents),
        cmocka_unit_test(test_agents_abi__environments),
        cmocka_unit_test(test_agents_abi__operators),
    };
    msc_test_select(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
