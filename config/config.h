// The configuration: what to search, in the keys of MSC's own RFC, and every default.
//
// One JSON file holds the model, the dataset, the stages and, for each tool (`quantize`), a list of
// searches under `gym`. Reading resolves it: paths become usable from the current folder, defaults
// are filled in, the parameters of environments and agents are read by their own tables, so that a
// wrong key is an error before a model is loaded. The same form, resolved, stands in a record's
// header, with paths relative to the record: a record is a configuration, too.
//
//     struct msc_config *config;
//     MSC_TRY(msc_config_load(&config, "digits.json"));
//     MSC_TRY(msc_config_to_json(config, &json, "."));     // every default
//     msc_config_destroy(config);
//
// Inputs are relative to the configuration's folder, outputs to the workspace, the workspace to the
// configuration's folder.
#ifndef MSC_CONFIG_CONFIG_H
#define MSC_CONFIG_CONFIG_H

#include "base/alloc.h"
#include "base/log.h"
#include "data/dataset.h"
#include "env/env.h"
#include "graph/graph.h"
#include "search/search.h"

MSC_PUBLIC_BEGIN

struct msc_record;

enum msc_config_baseline {
    MSC_CONFIG_BASELINE_UNIFORM, // one plan for each choice label
    MSC_CONFIG_BASELINE_GREEDY,  // and a greedy search of its own beside the search
};

// Whether the end of a search measures what it found in the runtime that it is for, and how.
struct msc_config_runtime {
    bool is_wanted;
    int64_t threads, rounds;
};

// One search: a row of a section's `gym` list. Plain data, borrowed from the configuration.
struct msc_config_entry {
    const char *section;       // "quantize"; "gym" for entries without a tool
    const char *name;          // "quantize[0]"
    const char *place;         // "digits.json: quantize.gym[0]", before what is wrong with it
    const char *record;        // path
    const char *strategy_file; // path; NULL without a tool
    const char *target;        // of the section; NULL without a tool
    struct msc_config_runtime runtime;
    // Nobody has said what it is: a record that there is keeps its own.
    bool is_target_default, are_sites_default, are_observers_default, is_agent_default;
    bool is_budget_default; // none was given: with the agent by default, so many trials
    const char *base;       // the strategy to start from; NULL: what entries before found
    const char *folder;     // where an agent's program runs
    const struct msc_env_def *env_def;
    struct msc_env_library *library; // of env_def, or NULL
    struct cJSON *env;               // resolved
    struct cJSON *agent;             // resolved
    struct cJSON *agent_said;        // what the configuration says of it; NULL: nothing
    struct cJSON *race;              // as it was given (records/race.h); NULL: none
    struct cJSON *rerank;            // resolved (docs/runtime.md); NULL: none
    struct cJSON *distill;           // resolved: `ridge` and `held_back`; NULL: no such stage
    struct msc_budget budget;
    double trial_seconds; // <= 0: none
    double quiet_seconds; // 0: for ever
    uint64_t seed;
    uint32_t parallel;
    int baseline;      // enum msc_config_baseline
    bool is_delivered; // else its record is all that is written
    bool is_plain; // the section lists no searches: its strategy file, if there is one, is applied
};

// An input that is fed, from one sample of a batch to the next, by an output or other tensor.
struct msc_config_state {
    const char *input, *output;
};

struct msc_config_dataset {
    struct msc_dataset_options options; // inputs NULL: no dataset; batch 0: by the model's shapes
    size_t n_states;
    struct msc_config_state *states;
    double validation_fraction;    // 0: none
    const char *validation_inputs; // or a second set
    const char *validation_labels;
};

// The stages around the searches, each done once (pipeline/processor.h).
struct msc_config_stages {
    bool are_named; // else nothing is recorded of them
    bool has_track;
    const char *graph_file; // of `parse`; NULL: none
    const char *model_file; // of `export`; NULL: by the model's name
    const char *track_file;
    int64_t track_samples; // 0: all
};

// What becomes of code that a configuration names: a shared library for an environment or agent, a
// program for an agent. To read an environment's keys its library has to be loaded.
enum msc_config_code {
    MSC_CONFIG_CODE_ALLOWED, // the file is trusted
    MSC_CONFIG_CODE_REFUSED, // a file that names code is refused
    MSC_CONFIG_CODE_IDLE,    // only what would have to be loaded is refused: no agent is started
    MSC_CONFIG_CODE_NODE, // nor is a program of a metric, since parts of trials alone are measured
};

struct msc_config {
    struct msc_arena arena;
    struct cJSON *json; // as read
    enum msc_config_code code;
    bool is_stored;     // read from a record's header
    bool names_code;    // a library or program: who goes on from a record has to say so
    const char *path;   // begins error texts
    const char *folder; // that paths in `json` are relative to
    const char *workspace;
    int verbose;          // index into the names of the table
    const char *log_file; // NULL: none
    double log_seconds;   // between lines on how a search goes; 0: none
    const char *device;
    const char *model; // NULL: none
    size_t n_bindings;
    struct msc_binding *bindings;
    const struct cJSON *outputs; // where searches end that do not say it; of `json`; NULL: nowhere
    struct msc_config_dataset dataset;
    double atol, rtol;      // of the baseline stage
    int64_t profile_repeat; // 0: no such stage
    struct msc_config_stages stages;
    size_t n_entries; // in the order they run
    struct msc_config_entry *entries;
};

// MSC_E_INVALID names file, place and fix; MSC_E_NOT_FOUND and others: what it names is missing;
// MSC_E_STATE: it names code that may not run. *out is owned by the caller.
enum msc_status msc_config_load(struct msc_config **out, const char *path,
                                enum msc_config_code code);
// From a tree, whose ownership is taken (also on failure). `path` begins error texts.
enum msc_status msc_config_create(struct msc_config **out, struct cJSON *json, const char *path,
                                  const char *folder, enum msc_config_code code);
// The same of a record's header, which is complete: it gets no default sites.
enum msc_status msc_config_create_stored(struct msc_config **out, struct cJSON *json,
                                         const char *path, const char *folder,
                                         enum msc_config_code code);
void msc_config_destroy(struct msc_config *config); // accepts NULL

enum msc_log_level msc_config_log_level(const struct msc_config *config);
// By name ("quantize[1]"); MSC_E_INVALID lists those there are.
enum msc_status msc_config_find_entry(size_t *out, const struct msc_config *config,
                                      const char *name);

// An agent as an entry's "agent" says it (NULL: none said), with all its parameters, as
// msc_config_entry.agent is. `name` is the entry's, for error texts. *out is owned by the caller.
enum msc_status msc_config_resolve_agent(struct msc_config *config, const char *name,
                                         const struct cJSON *object, struct cJSON **out);

// The resolved configuration in its own form, with paths relative to `folder` and every default
// (msc_env_complete says which an environment has). *out is owned by the caller.
enum msc_status msc_config_to_json(const struct msc_config *config, struct cJSON **out,
                                   const char *folder);
// The same for one entry only, of the configuration or like one of it: the contents of its record's
// header. Here the environment has only given keys and the defaults of its parameters' table.
enum msc_status msc_config_entry_to_json(const struct msc_config *config,
                                         const struct msc_config_entry *entry, struct cJSON **out,
                                         const char *folder);
// Members of that which may change between launches of one search, for msc_search_options: what
// only says where files are (their content is hashed), how results are shown, and outputs.
extern const char *const msc_config_free_keys[];

// Appends every key with its meaning, default and range, section by section.
void msc_config_help(struct msc_str *out);
// The same for programs: a list of {"section", "keys"}, keys as msc_param_describe says.
enum msc_status msc_config_describe(struct cJSON *list);

MSC_PUBLIC_END

#endif
