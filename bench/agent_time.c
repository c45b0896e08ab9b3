// Measures the time that an agent takes for a proposal, by size of the space. The losses are made
// up and cost nothing: each choice has its own, and neighbouring tasks interact. One cost has a
// bound, 0.4 of the way from the least to the greatest.
//
//     bench_agent_time [--agent NAME] [--trials 500] [--parallel 8] [--sizes 10x4,50x8] [--seed 1]
//         [--features 1] [--objectives 1] [--json FILE]
//
// For each size, tasks x choices, prints the mean processor time of a proposal (ask and tell), the
// time of the slowest round of `parallel` proposals, and the best loss within the bound after 50,
// 150 and all trials. The mean times are also the rows of FILE. The seed is that of the problem.
// With --features 1, each choice has a feature: its own loss, wrong by random factors. With
// --objectives 2, the size is an objective, too; with 3, also a time, which is measured like the
// loss.
#include "agents/agent.h"
#include "base/json.h"
#include "bench/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define USUAL_SIZES                                                                                \
    "10x4,20x4,24x4,50x3,50x8,80x6,75x8,100x6,150x3,100x8,200x4,300x3,200x8,500x4,500x8,1000x3,"   \
    "1000x8"
enum { MOST_CHOICES = 16, MOST_PARALLEL = 64 };
#define BOUND_SHARE 0.4
#define STRENGTH 1.0 // of the interaction of neighbours, relative to their own losses

struct settings {
    const char *agent, *sizes, *json;
    int trials, parallel, seed, features, objectives;
};

// A made-up space, its goal, and the losses of its points.
struct problem {
    struct msc_arena arena;
    struct msc_space space;
    struct msc_goal goal;
    uint32_t n_choices;
    // Of the loss and of the time:
    double *alone[2]; // [n_tasks, n_choices]
    double *pairs[2]; // [n_tasks, n_choices, n_choices], interaction with the next task
};

// ---- The problem ------------------------------------------------------------------------------

static double uniform(struct msc_rng *rng, double low, double high) {
    return low + (high - low) * msc_rng_double(rng);
}

static enum msc_status make_losses(struct problem *p, int which, size_t n_tasks,
                                   struct msc_rng *rng) {
    size_t n = p->n_choices;
    double *alone = msc_arena_array(&p->arena, n_tasks * n, sizeof *alone);
    double *pairs = msc_arena_array(&p->arena, n_tasks * n * n, sizeof *pairs);
    MSC_TRY(MSC_ALLOCATED(alone && pairs));
    p->alone[which] = alone;
    p->pairs[which] = pairs;
    for (size_t t = 0; t < n_tasks; t++) {
        double loss = pow(10.0, uniform(rng, -1.0, 0.0));
        for (size_t c = n; c-- > 1;) {
            alone[t * n + c] = loss;
            loss *= uniform(rng, 0.2, 0.5);
        }
    }
    for (size_t t = 0; t + 1 < n_tasks; t++) {
        for (size_t a = 0; a < n; a++) {
            for (size_t b = 0; b < n; b++) {
                double scale = sqrt(alone[t * n + a] * alone[(t + 1) * n + b]);
                pairs[(t * n + a) * n + b] = STRENGTH * scale * uniform(rng, -1.0, 1.0);
            }
        }
    }
    return MSC_OK;
}

static enum msc_status make_costs(struct problem *p, struct msc_cost *cost, struct msc_rng *rng) {
    size_t n_tasks = p->space.n_tasks;
    struct msc_cost_term *terms = msc_arena_array(&p->arena, n_tasks, sizeof *terms);
    struct msc_cost_factor *factors = msc_arena_array(&p->arena, n_tasks, sizeof *factors);
    double *values = msc_arena_array(&p->arena, n_tasks * p->n_choices, sizeof *values);
    double least = 0.0, greatest = 0.0;
    MSC_TRY(MSC_ALLOCATED(terms && factors && values));
    for (size_t t = 0; t < n_tasks; t++) {
        double size = pow(10.0, uniform(rng, -1.0, 0.0));
        double *by_choice = values + t * p->n_choices;
        for (uint32_t c = 0; c < p->n_choices; c++) {
            by_choice[c] = size * (p->n_choices - c);
        }
        greatest += by_choice[0];
        least += by_choice[p->n_choices - 1];
        factors[t] = (struct msc_cost_factor){.task = (uint32_t)t, .by_choice = by_choice};
        terms[t] = (struct msc_cost_term){.scale = 1.0, .n_factors = 1, .factors = &factors[t]};
    }
    *cost = (struct msc_cost){.metric = "size", .n_terms = n_tasks, .terms = terms};
    p->goal.n_bounds = 1;
    p->goal.bounds[0] = (struct msc_bound){
        .metric = 1, .min = -INFINITY, .max = least + BOUND_SHARE * (greatest - least)};
    return MSC_OK;
}

// Each task's features are wrong by a factor of its own, and each choice's by a smaller one.
static enum msc_status make_features(struct problem *p, struct msc_task tasks[],
                                     struct msc_rng *rng) {
    static const char *const names[] = {"output_error"};
    for (size_t t = 0; t < p->space.n_tasks; t++) {
        double *features = msc_arena_array(&p->arena, p->n_choices, sizeof *features);
        double wrong = pow(10.0, uniform(rng, -0.5, 0.5));
        MSC_TRY(MSC_ALLOCATED(features));
        for (uint32_t c = 0; c < p->n_choices; c++) {
            features[c] =
                p->alone[0][t * p->n_choices + c] * wrong * pow(10.0, uniform(rng, -0.15, 0.15));
        }
        tasks[t].choice_features = features;
    }
    p->space.n_choice_features = 1;
    p->space.choice_feature_names = names;
    return MSC_OK;
}

static enum msc_status make_problem(struct problem *p, const struct settings *s, size_t n_tasks,
                                    uint32_t n_choices) {
    static const char *const labels[MOST_CHOICES] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                     "i", "j", "k", "l", "m", "n", "o", "p"};
    static const uint32_t order[MOST_CHOICES] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                 8, 9, 10, 11, 12, 13, 14, 15};
    static const struct msc_metric metrics[] = {
        {.name = "loss"}, {.name = "size", .is_exact = true}, {.name = "time"}};
    struct msc_task *tasks = msc_arena_array(&p->arena, n_tasks, sizeof *tasks);
    struct msc_cost *cost = msc_arena_array(&p->arena, 1, sizeof *cost);
    struct msc_rng rng;
    MSC_TRY(MSC_ALLOCATED(tasks && cost));
    for (size_t t = 0; t < n_tasks; t++) {
        tasks[t] = (struct msc_task){.name = msc_arena_printf(&p->arena, "task_%zu", t),
                                     .n_choices = n_choices,
                                     .labels = labels,
                                     .most_expensive_first = order};
    }
    p->n_choices = n_choices;
    p->space = (struct msc_space){.n_tasks = n_tasks,
                                  .tasks = tasks,
                                  .n_metrics = s->objectives > 2 ? 3 : 2,
                                  .metrics = metrics,
                                  .n_costs = 1,
                                  .costs = cost};
    msc_rng_seed(&rng, (uint64_t)s->seed, 1);
    MSC_TRY(make_losses(p, 0, n_tasks, &rng));
    MSC_TRY(make_costs(p, cost, &rng));
    MSC_TRY(make_losses(p, 1, n_tasks, &rng));
    p->goal.n_objectives = (size_t)s->objectives;
    for (int i = 0; i < s->objectives; i++) {
        p->goal.objectives[i].metric = i;
    }
    if (s->features) {
        MSC_TRY(make_features(p, tasks, &rng));
    }
    return msc_space_check(&p->space);
}

// The loss of a point, or its time.
static double sum_of(const struct problem *p, int which, const uint32_t choices[]) {
    size_t n = p->n_choices, n_tasks = p->space.n_tasks;
    double sum = 0.0;
    for (size_t t = 0; t < n_tasks; t++) {
        sum += p->alone[which][t * n + choices[t]];
        sum += t + 1 < n_tasks ? p->pairs[which][(t * n + choices[t]) * n + choices[t + 1]] : 0.0;
    }
    return sum;
}

// ---- The search -------------------------------------------------------------------------------

static void evaluate(const struct problem *p, struct msc_trial *trial, int64_t id) {
    trial->id = id;
    msc_trial_begin(trial, &p->space);
    trial->outcome.metrics[0] = sum_of(p, 0, trial->proposal.choices);
    if (p->space.n_metrics > 2) {
        trial->outcome.metrics[2] = sum_of(p, 1, trial->proposal.choices);
    }
    msc_goal_judge(&p->goal, &p->space, &trial->outcome);
}

// The uniform plans come first, as in a search.
static enum msc_status tell_uniform(struct msc_agent *agent, const struct problem *p,
                                    struct msc_trial *trial, int64_t *id) {
    for (uint32_t c = 0; c < p->n_choices; c++) {
        for (size_t t = 0; t < p->space.n_tasks; t++) {
            trial->proposal.choices[t] = c;
        }
        evaluate(p, trial, (*id)++);
        MSC_TRY(msc_agent_tell(agent, trial));
    }
    return MSC_OK;
}

// Processor time, so that other work on the machine does not count. The agent uses one thread.
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const int looks[] = {50, 150}; // numbers of trials after which the best loss is kept
enum { N_LOOKS = sizeof looks / sizeof looks[0] };

// The seconds of asks and tells, of all and of the slowest round; and the best loss within the
// bound, at each look and at the end.
struct result {
    double all, slowest, best, looked[N_LOOKS];
};

static enum msc_status search(struct msc_agent *agent, struct problem *p, const struct settings *s,
                              struct result *out) {
    struct msc_trial trials[MOST_PARALLEL];
    struct msc_proposal asked[MOST_PARALLEL];
    int64_t id = 0;
    for (int i = 0; i < s->parallel; i++) {
        MSC_TRY(msc_trial_init(&trials[i], &p->arena, &p->space));
    }
    MSC_TRY(tell_uniform(agent, p, &trials[0], &id));
    for (int done = 0; done < s->trials;) {
        size_t n = 0;
        for (int i = 0; i < s->parallel; i++) {
            asked[i] = trials[i].proposal;
        }
        double start = now();
        MSC_TRY(msc_agent_ask(agent, asked, (size_t)s->parallel, &n));
        double seconds = now() - start;
        for (size_t i = 0; i < n; i++) {
            trials[i].proposal = asked[i];
            evaluate(p, &trials[i], id++);
            bool is_inside = trials[i].outcome.state == MSC_TRIAL_COMPLETE;
            out->best = fmin(out->best, is_inside ? trials[i].outcome.metrics[0] : INFINITY);
            for (int k = 0; k < N_LOOKS; k++) {
                out->looked[k] = done + (int)i < looks[k] ? out->best : out->looked[k];
            }
        }
        start = now();
        for (size_t i = 0; i < n; i++) {
            MSC_TRY(msc_agent_tell(agent, &trials[i]));
        }
        seconds += now() - start;
        out->all += seconds;
        out->slowest = fmax(out->slowest, seconds);
        done += (int)n;
        if (n == 0) {
            return MSC_FAIL(MSC_E_STATE, "%s proposes nothing after %d trials", s->agent, done);
        }
    }
    return MSC_OK;
}

static enum msc_status bench_size(const struct settings *s, size_t n_tasks, uint32_t n_choices,
                                  cJSON *rows) {
    struct problem p = {0};
    struct msc_agent *agent = NULL;
    struct result result = {.best = INFINITY};
    char model[64];
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(make_problem(&p, s, n_tasks, n_choices));
    MSC_TRY_OUT(msc_agent_create(&agent, msc_agent_find(s->agent), NULL, &p.space, &p.goal, 1));
    MSC_TRY_OUT(search(agent, &p, s, &result));
    snprintf(model, sizeof model, "%zux%u", n_tasks, n_choices);
    double mean = 1000.0 * result.all / s->trials;
    printf("| %s | %.3f | %.1f | %.5g | %.5g | %.5g |\n", model, mean, 1000.0 * result.slowest,
           result.looked[0], result.looked[1], result.best);
    fflush(stdout);
    MSC_TRY_OUT(bench_row_add(rows, &(struct bench_row){.bench = "agent ms a proposal",
                                                        .model = model,
                                                        .agent = s->agent,
                                                        .peer = "",
                                                        .ours = mean}));
out:
    msc_agent_destroy(agent);
    msc_arena_finish(&p.arena);
    return status;
}

static enum msc_status bench_all(const struct settings *s) {
    cJSON *rows = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    printf("| tasks x choices | %s, ms a proposal | slowest round of %d, ms | best loss after %d | "
           "%d | %d |\n|---|---|---|---|---|---|\n",
           s->agent, s->parallel, looks[0], looks[1], s->trials);
    for (const char *at = s->sizes; at && *at && status == MSC_OK; at = strchr(at, ',')) {
        size_t n_tasks = 0;
        unsigned n_choices = 0;
        at += *at == ',';
        if (sscanf(at, "%zux%u", &n_tasks, &n_choices) != 2 || n_tasks == 0 || n_choices < 2 ||
            n_choices > MOST_CHOICES) {
            status = MSC_FAIL(MSC_E_INVALID,
                              "--sizes: \"%s\" is not a size such as 50x8, of 2 to "
                              "%d choices",
                              at, MOST_CHOICES);
            break;
        }
        status = bench_size(s, n_tasks, n_choices, rows);
    }
    if (status == MSC_OK && s->json) {
        status = bench_rows_save(rows, s->json);
    }
    cJSON_Delete(rows);
    return status;
}

// ---- The program ------------------------------------------------------------------------------

static bool read_settings(struct settings *s, int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char **text = strcmp(argv[i], "--agent") == 0   ? &s->agent
                            : strcmp(argv[i], "--sizes") == 0 ? &s->sizes
                            : strcmp(argv[i], "--json") == 0  ? &s->json
                                                              : NULL;
        int *number = strcmp(argv[i], "--trials") == 0       ? &s->trials
                      : strcmp(argv[i], "--parallel") == 0   ? &s->parallel
                      : strcmp(argv[i], "--seed") == 0       ? &s->seed
                      : strcmp(argv[i], "--features") == 0   ? &s->features
                      : strcmp(argv[i], "--objectives") == 0 ? &s->objectives
                                                             : NULL;
        if (text) {
            *text = argv[i + 1];
        } else if (number) {
            *number = atoi(argv[i + 1]);
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && s->trials > 0 && s->parallel > 0 && s->parallel <= MOST_PARALLEL &&
           s->objectives >= 1 && s->objectives <= 3 && msc_agent_find(s->agent);
}

int main(int argc, char **argv) {
    struct settings s = {.agent = "auto",
                         .sizes = USUAL_SIZES,
                         .trials = 500,
                         .parallel = 8,
                         .seed = 1,
                         .objectives = 1};
    if (!read_settings(&s, argc, argv)) {
        fprintf(stderr,
                "usage: bench_agent_time [--agent NAME] [--trials N] [--parallel 1 ... %d] "
                "[--sizes 10x4,50x8,...] [--seed N] [--features 1] [--objectives 1 ... 3] [--json "
                "FILE]\n",
                MOST_PARALLEL);
        return 2;
    }
    enum msc_status status = bench_all(&s);
    if (status != MSC_OK) {
        fprintf(stderr, "bench_agent_time: %s\n", msc_status_message());
    }
    return status != MSC_OK;
}
