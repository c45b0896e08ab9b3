// The space of the combined environment: tasks of channels, then tasks of bits. Each baseline
// combines one density with one number of bits.
#include "base/alloc.h"
#include "env/combined/internal.h"

#include <math.h>
#include <string.h>

// The features of tasks of bits, plus the kind of the task.
enum { POSITION, LOG2_ELEMENTS, MACS_SHARE, IS_WEIGHT, IS_CHANNELS, N_FEATURES };

static const char *const feature_names[N_FEATURES] = {"position", "log2_elements", "macs_share",
                                                      "is_weight", "is_channels"};

// The choice features of both spaces; NaN if not applicable.
enum { N_CHOICE_FEATURES = 5 };

static const char *const choice_feature_names[N_CHOICE_FEATURES] = {
    "bits", "group_size", "size_bytes", "weight_error", "density"};

// ---- Tasks ------------------------------------------------------------------------------------

static const double *find_feature(const struct msc_space *space, size_t task, const char *name) {
    for (size_t i = 0; i < space->n_features; i++) {
        if (strcmp(space->feature_names[i], name) == 0) {
            return &space->tasks[task].features[i];
        }
    }
    return NULL;
}

static void fill_features(double f[N_FEATURES], const struct msc_space *of, size_t task,
                          bool is_channels) {
    for (int i = 0; i < N_FEATURES; i++) {
        const double *own = find_feature(
            of, task, is_channels && i == LOG2_ELEMENTS ? "log2_units" : feature_names[i]);
        f[i] = own ? *own : 0;
    }
    f[IS_CHANNELS] = is_channels;
}

static double find_choice_feature(const struct msc_space *space, size_t task, uint32_t choice,
                                  const char *name) {
    for (size_t i = 0; i < space->n_choice_features; i++) {
        if (strcmp(space->choice_feature_names[i], name) == 0) {
            return space->tasks[task].choice_features[choice * space->n_choice_features + i];
        }
    }
    return NAN;
}

static enum msc_status join_choice_features(struct msc_task *out, const struct msc_space *of,
                                            size_t task, struct msc_arena *arena) {
    double(*features)[N_CHOICE_FEATURES] =
        msc_arena_array(arena, out->n_choices, sizeof(features[0]));
    MSC_TRY(MSC_ALLOCATED(features));
    for (uint32_t c = 0; c < out->n_choices; c++) {
        for (int i = 0; i < N_CHOICE_FEATURES; i++) {
            features[c][i] = find_choice_feature(of, task, c, choice_feature_names[i]);
        }
    }
    out->choice_features = features[0];
    return MSC_OK;
}

// A group has the same name as a weight. If the weight's bits are also a task, the group's task
// needs another name.
static enum msc_status name_task(struct msc_task *task, struct msc_arena *arena) {
    task->name = msc_arena_printf(arena, "%s channels", task->name);
    return MSC_ALLOCATED(task->name);
}

// Tasks of bits follow those of channels.
static enum msc_status join_neighbours(struct msc_combined *j, struct msc_arena *arena) {
    const struct msc_space *bits = &j->bits.space.space;
    uint32_t(*pairs)[2] = msc_arena_array(arena, bits->n_neighbours + 1, sizeof *pairs);
    MSC_TRY(MSC_ALLOCATED(pairs));
    for (size_t i = 0; i < bits->n_neighbours; i++) {
        pairs[i][0] = bits->neighbours[i][0] + (uint32_t)j->n_channel_tasks;
        pairs[i][1] = bits->neighbours[i][1] + (uint32_t)j->n_channel_tasks;
    }
    j->space.n_neighbours = bits->n_neighbours;
    j->space.neighbours = (const uint32_t(*)[2])pairs;
    return MSC_OK;
}

static enum msc_status join_tasks(struct msc_combined *j, struct msc_arena *arena) {
    const struct msc_space *parts[] = {&j->channels.space.space, &j->bits.space.space};
    size_t n = parts[0]->n_tasks + parts[1]->n_tasks, at = 0;
    struct msc_task *tasks = msc_arena_array(arena, n + 1, sizeof(tasks[0]));
    double(*features)[N_FEATURES] = msc_arena_array(arena, n + 1, sizeof(features[0]));
    MSC_TRY(MSC_ALLOCATED(tasks && features));
    for (int part = 0; part < 2; part++) {
        for (size_t t = 0; t < parts[part]->n_tasks; t++) {
            tasks[at] = parts[part]->tasks[t];
            MSC_TRY(part == 0 ? name_task(&tasks[at], arena) : MSC_OK);
            fill_features(features[at], parts[part], t, part == 0);
            tasks[at].features = features[at];
            MSC_TRY(join_choice_features(&tasks[at], parts[part], t, arena));
            at++;
        }
    }
    j->n_channel_tasks = parts[0]->n_tasks;
    j->space.tasks = tasks;
    j->space.n_tasks = n;
    j->space.n_features = N_FEATURES;
    j->space.feature_names = feature_names;
    j->space.n_choice_features = N_CHOICE_FEATURES;
    j->space.choice_feature_names = choice_feature_names;
    return join_neighbours(j, arena);
}

// ---- Baselines --------------------------------------------------------------------------------

static enum msc_status join_baselines(struct msc_combined *j, struct msc_arena *arena) {
    const struct msc_space *channels = &j->channels.space.space, *bits = &j->bits.space.space;
    size_t n = channels->n_baselines * bits->n_baselines, n_tasks = j->space.n_tasks;
    struct msc_baseline *baselines = msc_arena_array(arena, n + 1, sizeof(baselines[0]));
    uint32_t *points = msc_arena_array(arena, n * n_tasks + 1, sizeof(points[0]));
    MSC_TRY(MSC_ALLOCATED(baselines && points));
    for (size_t i = 0; i < n; i++) {
        const struct msc_baseline *a = &channels->baselines[i / bits->n_baselines];
        const struct msc_baseline *b = &bits->baselines[i % bits->n_baselines];
        uint32_t *point = points + i * n_tasks;
        const char *label = msc_arena_printf(arena, "%s, %s", a->label, b->label);
        MSC_TRY(MSC_ALLOCATED(label));
        memcpy(point, a->choices, channels->n_tasks * sizeof(point[0]));
        memcpy(point + channels->n_tasks, b->choices, bits->n_tasks * sizeof(point[0]));
        baselines[i] = (struct msc_baseline){label, point};
    }
    j->space.baselines = baselines;
    j->space.n_baselines = n;
    return MSC_OK;
}

enum msc_status msc_combined__build_space(struct msc_combined *j,
                                          const struct msc_quantize_inputs *in,
                                          const struct msc_prune_inputs *of_channels,
                                          struct msc_arena *arena) {
    const struct msc_prune_costing of = {
        .pruner = j->channels.pruner, .space = &j->channels.space, .whole = in->whole};
    struct msc_combined_costing costing = {.j = j, .in = in};
    j->space = (struct msc_space){0};
    MSC_TRY(join_tasks(j, arena));
    MSC_TRY(join_baselines(j, arena));
    MSC_TRY(msc_prune_env__factors(&costing.factors, &of, arena));
    MSC_TRY(msc_prune_env__counter(&costing.counter, of_channels, arena));
    return msc_metrics_build(&j->space, j->references, &j->bits.runs.metrics, &costing, arena);
}
