// Types, key tables and functions shared by the files that read and write configurations.
//
// The structs are the objects of a configuration as their tables (tables.c, stages.c) read them,
// before paths are joined and objects resolved.
#ifndef MSC_CONFIG_CONFIG_INTERNAL_H
#define MSC_CONFIG_CONFIG_INTERNAL_H

#include "base/json.h"
#include "base/param.h"
#include "config/config.h"

#include <string.h>

// The top level.
struct msc_config_top {
    const char *schema, *workspace, *log_file, *device, *model;
    int verbose;
    double log_seconds;
    const cJSON *bind, *passes, *operators, *outputs, *dataset, *baseline, *profile, *gym;
    const cJSON *prune, *quantize, *joint;
    const cJSON *prepare, *parse, *optimize, *distill, *track, *compile, *export_model;
};

struct msc_config_section {
    const char *strategy_file, *target;
    bool is_target_default;
    const cJSON *runtime, *gym;
    struct msc_config_runtime in_runtime; // the keys of `runtime`, after reading
};

struct msc_config_pass {
    const char *rules;
};

struct msc_config_runtime_keys {
    const char *name;
    int64_t threads, rounds;
};

struct msc_config_gym {
    const char *record, *base, *folder;
    const cJSON *env, *agent, *budget, *race, *rerank, *distill, *equalize;
    double trial_seconds;
    double quiet_seconds;
    int64_t seed, parallel;
    int baseline;
    bool deliver;
};

struct msc_config_rerank {
    int64_t top;
    const cJSON *command;
};

struct msc_config_equalize {
    int64_t weights, activations;
    bool multiply, rotate;
};

struct msc_config_distill {
    const cJSON *ridge;
    double held_back;
};

struct msc_config_budget {
    int64_t trials;
    double seconds, target;
};

struct msc_config_data {
    const char *inputs, *labels;
    int64_t samples, batch, sequence;
    const cJSON *state, *image, *validation;
};

struct msc_config_image {
    int64_t height, width, channels;
    bool channels_last;
    double scale;
    const cJSON *mean, *std;
};

struct msc_config_validation {
    const char *inputs, *labels;
};

struct msc_config_check {
    double atol, rtol;
};

struct msc_config_profile {
    int64_t repeat;
};

struct msc_config_check_outer {
    const cJSON *check_config;
};

extern const struct msc_param msc_config__top_params[];
extern const struct msc_param msc_config__section_params[];
extern const struct msc_param msc_config__runtime_params[];
extern const struct msc_param msc_config__gym_params[];
extern const struct msc_param msc_config__rerank_params[];
extern const struct msc_param msc_config__equalize_params[];
extern const struct msc_param msc_config__distill_params[];
extern const struct msc_param msc_config__budget_params[];
extern const struct msc_param msc_config__data_params[];
extern const struct msc_param msc_config__image_params[];
extern const struct msc_param msc_config__validation_params[];
extern const struct msc_param msc_config__baseline_params[];
extern const struct msc_param msc_config__check_params[];
extern const struct msc_param msc_config__profile_params[];
extern const struct msc_param msc_config__pass_params[];
extern const struct msc_param msc_config__prepare_params[];
extern const struct msc_param msc_config__parse_params[];
extern const struct msc_param msc_config__optimize_params[];
extern const struct msc_param msc_config__compile_params[];
extern const struct msc_param msc_config__track_params[];
extern const struct msc_param msc_config__export_params[];
// Only for help and the schema: records/race.h reads these keys and sets their defaults from the
// samples.
extern const struct msc_param msc_config__race_params[];

// The tools, in the order their stages run.
struct msc_config_tool {
    const char *name; // name of the tool, of its section and of its environment
    size_t offset;    // offset of the section in msc_config_top
    // The value of `gym` if the section lists no searches: a search that only measures the plan
    // with the usual choice for every task.
    const char *plain_gym;
};
#define MSC_CONFIG_TOOL_COUNT 3
extern const struct msc_config_tool msc_config__tools[MSC_CONFIG_TOOL_COUNT];

static inline bool msc_config__decides_channels(const struct msc_config_entry *e) {
    return (e->env_def->decides & MSC_ENV_DECIDES_CHANNELS) != 0;
}

static inline bool msc_config__decides_only_channels(const struct msc_config_entry *e) {
    return e->env_def->decides == MSC_ENV_DECIDES_CHANNELS;
}

// read.c
// Fills `target` with defaults, then with the object (may be NULL). Errors begin with PATH: WHERE.
enum msc_status msc_config__read(struct msc_config *c, const struct msc_param params[],
                                 void *target, const cJSON *object, const char *where);
// Formats a string in the configuration's arena; NULL if out of memory.
char *msc_config__text(struct msc_config *c, const char *format, ...) MSC_PRINTF(2, 3);
// Replaces a path relative to `folder` by the same path relative to the current folder (NULL stays
// NULL). False if out of memory.
bool msc_config__join(struct msc_config *c, const char **path, const char *folder);

// yaml.c: reads YAML as a tree, which the caller owns; NULL on failure. Messages begin with
// PATH:LINE:COLUMN.
enum msc_status msc_config__read_yaml(cJSON **out, const char *text, size_t length,
                                      const char *path);
// toml.c: likewise for TOML. MSC_E_UNSUPPORTED: this build cannot read it (toml_none.c).
enum msc_status msc_config__read_toml(cJSON **out, const char *text, size_t length,
                                      const char *path);
// The version of toml++, or NULL if this build cannot read TOML.
const char *msc_config__toml_version(void);

// dataset.c: reads the section `dataset`.
enum msc_status msc_config__read_dataset(struct msc_config *c, const cJSON *object);
// after.c: reads and writes the keys of the steps that follow a search.
enum msc_status msc_config__read_runtime(struct msc_config *c, struct msc_config_runtime *out,
                                         const cJSON *value, const char *where);
// *out is owned by the caller: an object with `top` and `command`; NULL if `value` is NULL. Errors
// begin with `place`.
enum msc_status msc_config__read_rerank(struct msc_config *c, cJSON **out, const cJSON *value,
                                        const char *place);
// Like msc_config__read_rerank, but for `equalize`, which may be true, false or an object.
enum msc_status msc_config__read_equalize(struct msc_config *c, cJSON **out, const cJSON *value,
                                          const char *place);
// Like msc_config__read_rerank, but for `distill`, which may be true, false or an object.
enum msc_status msc_config__read_distill(struct msc_config *c, cJSON **out, const cJSON *value,
                                         const char *place);
// Adds "runtime" to a section. If `is_full` is false, a runtime equal to the default is left out.
enum msc_status msc_config__write_runtime(cJSON *section, const struct msc_config_runtime *runtime,
                                          bool is_full);
// stages.c
// Moves the stages in "optimize" and "compile" to the top level.
enum msc_status msc_config__open_groups(struct msc_config *c, struct msc_config_top *top);
// Reads the other stages. Call it after the dataset is read.
enum msc_status msc_config__read_stages(struct msc_config *c, const struct msc_config_top *top);
// Gives "distill" of the top level to the last `quantize` search. Call after the entries are read.
enum msc_status msc_config__set_distill(struct msc_config *c, const struct msc_config_top *top);
enum msc_status msc_config__write_stages(cJSON *top, const struct msc_config *c);
// entries.c: reads one search and adds it to the entries. `of` is the search's section; NULL: the
// search is in the list `gym` of the top level.
enum msc_status msc_config__read_entry(struct msc_config *c, const char *section,
                                       const struct msc_config_section *of, const cJSON *object,
                                       int index);
// sections.c: reads all searches of all sections and allocates the table of entries.
enum msc_status msc_config__read_entries(struct msc_config *c, const struct msc_config_top *top);

#endif
