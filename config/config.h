// The configuration: which searches to run on which model and data.
//
// One file of JSON, YAML or TOML, in the keys of MSC's RFC, holds the model, the dataset, the
// stages and, for each tool such as `quantize`, a list of searches under `gym`. Reading it resolves
// it: paths become usable from the current folder, and missing keys get their defaults. The
// parameters of environments and agents are read by their own tables, so a wrong key is an error
// before a model is loaded. The header of a record holds the resolved configuration in the same
// form, with paths relative to the record. A record can therefore be read as a configuration.
//
//     struct msc_config *config;
//     MSC_TRY(msc_config_load(&config, "digits.json", MSC_CONFIG_CODE_ALLOWED));
//     MSC_TRY(msc_config_to_json(config, &json, "."));     // with every default
//     msc_config_destroy(config);
//
// Paths of inputs and of the workspace are relative to the configuration's folder; paths of outputs
// are relative to the workspace.
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
    MSC_CONFIG_BASELINE_GREEDY,  // uniform plans and the result of a separate greedy search
};

// Whether and how the results of a search are measured in the target's runtime when the search
// ends.
struct msc_config_runtime {
    bool is_wanted;
    const char *name; // NULL: the target's runtime
    int64_t threads, rounds;
};

// One search: a row of a section's `gym` list. Plain data, borrowed from the configuration.
struct msc_config_entry {
    const char *section;       // "quantize"; "gym" for entries without a tool
    const char *name;          // "quantize[0]"
    const char *place;         // prefix of error messages: "digits.json: quantize.gym[0]"
    const char *record;        // path of the record
    const char *strategy_file; // path; NULL without a tool
    const char *target;        // the section's target; NULL without a tool
    struct msc_config_runtime runtime;
    // True if the configuration does not give the value. An existing record then keeps its own
    // value.
    bool is_target_default, are_sites_default, are_observers_default, is_agent_default;
    bool is_budget_default; // no budget is given; the default agent then gets 500 trials
    const char *base;       // the strategy to start from; NULL: the results of earlier entries
    const char *folder;     // folder in which an agent's program runs
    const struct msc_env_def *env_def;
    struct msc_env_library *library; // the library that env_def comes from, or NULL
    struct cJSON *env;               // with all defaults filled in
    struct cJSON *agent;             // with all defaults filled in
    struct cJSON *agent_said;        // `agent` as the configuration gives it; NULL: not given
    // As the configuration gives it (records/race.h), or false: no race. NULL: not given, so the
    // record decides or, if there is none, the session.
    struct cJSON *race;
    struct cJSON *rerank;   // with all defaults (docs/runtime.md); NULL: none
    struct cJSON *equalize; // bits of `weights` and `activations`; NULL: weights keep their values
    struct cJSON *distill;  // `ridge` and `held_back`, with defaults; NULL: no such stage
    struct msc_budget budget;
    double trial_seconds; // time limit of one trial; <= 0: none
    double quiet_seconds; // longest time without a sign of life; 0: no limit
    uint64_t seed;
    uint32_t parallel; // trials of a round; 0: not given, set when the session opens
    int baseline;      // enum msc_config_baseline
    bool is_delivered; // false: of the entry's outputs, only the record is written
    bool is_plain;     // the section lists no searches: an existing strategy file is applied
};

// An input whose value comes from the previous sample in the batch: the value that a tensor,
// usually an output, had for that sample.
struct msc_config_state {
    const char *input, *output;
};

struct msc_config_dataset {
    struct msc_dataset_options options; // inputs NULL: no dataset; batch 0: from the model's shapes
    size_t n_states;
    struct msc_config_state *states;
    // Activations may be quantised dynamically, so a batch has coarser scales than its samples have
    // by themselves: without a given batch, the samples of a transformer run one by one.
    bool is_dynamic;
    double validation_fraction;    // 0: none
    const char *validation_inputs; // a separate validation set; NULL: none
    const char *validation_labels;
};

// The stages around the searches; each runs once (pipeline/processor.h).
struct msc_config_stages {
    bool are_named; // false: no stage is recorded
    bool has_track;
    const char *graph_file; // file that `parse` writes; NULL: none
    const char *model_file; // file that `export` writes; NULL: named after the model
    const char *track_file;
    int64_t track_samples; // 0: all
};

// What to do if a configuration names code: a shared library for an environment or agent, or a
// program for an agent. Reading an environment's keys means loading its library.
enum msc_config_code {
    MSC_CONFIG_CODE_ALLOWED, // the file is trusted
    MSC_CONFIG_CODE_REFUSED, // a file that names code is refused
    MSC_CONFIG_CODE_IDLE,    // no agent will start: refused only if reading loads the code
    MSC_CONFIG_CODE_NODE,    // like IDLE, but a metric's program is allowed: a node measures only
                             // parts of trials, so it never starts that program
};

// A file or folder that the configuration names.
struct msc_config_path {
    const char *path;
    bool is_output; // written: the workspace, or something in it
    struct msc_config_path *next;
};

struct msc_config {
    struct msc_arena arena;
    struct cJSON *json; // the file's content
    enum msc_config_code code;
    bool is_stored;     // read from a record's header
    bool names_code;    // names a library or program: resuming a record needs consent
    const char *path;   // prefix of error messages
    const char *folder; // folder that paths in `json` are relative to
    const char *workspace;
    int verbose;          // index into the names of levels in the key table (tables.c)
    const char *log_file; // NULL: none
    double log_seconds;   // time between lines about a search's progress; 0: none
    const char *device;
    const char *model; // NULL: none
    size_t n_bindings;
    struct msc_binding *bindings;
    size_t n_rules;
    const char **rules; // paths of files of rules that rewrite the model, in order
    size_t n_operators;
    const char *const *operators; // paths of plug-ins for external joints (model/operators.h)
    const struct cJSON *outputs;  // member of `json`: default outputs of searches; NULL: none
    struct msc_config_dataset dataset;
    double atol, rtol;      // tolerances of the baseline stage
    int64_t profile_repeat; // runs in the stage `profile`; 0: no such stage
    struct msc_config_stages stages;
    struct msc_config_path *paths; // all paths that the keys name, except files of tables
    size_t n_entries;              // number of entries, which are in the order in which they run
    struct msc_config_entry *entries;
};

// Reads a file: YAML if its name ends in .yaml or .yml, TOML if in .toml, else JSON. MSC_E_INVALID:
// the message names file, key and fix. MSC_E_UNSUPPORTED: a build without TOML. MSC_E_STATE: the
// file names code that may not run. MSC_E_NOT_FOUND or another status: a file that the
// configuration names is missing or cannot be read. *out is owned by the caller.
enum msc_status msc_config_load(struct msc_config **out, const char *path,
                                enum msc_config_code code);
// Reads only the tree of a file; no key is checked, no other file is opened. *out is owned by the
// caller.
enum msc_status msc_config_read_tree(struct cJSON **out, const char *path);
// Whether this build reads TOML.
bool msc_config_has_toml(void);
// Whether a path has the ending of a configuration: .json, .yaml, .yml or .toml.
bool msc_config_is_path(const char *path);
// For a configuration of someone who may not read and write whatever this process can.
// MSC_E_INVALID: an input is outside of all `folders` or an output is outside of `workspace`, with
// links resolved; the message names the path. All folders must exist.
enum msc_status msc_config_check_inside(const struct msc_config *config,
                                        const char *const folders[], size_t n,
                                        const char *workspace);
// Reads a tree and takes ownership of it, also on failure. Error messages begin with `path`.
enum msc_status msc_config_create(struct msc_config **out, struct cJSON *json, const char *path,
                                  const char *folder, enum msc_config_code code);
// Reads the tree of a record's header. The tree is complete, so no default sites are added.
enum msc_status msc_config_create_stored(struct msc_config **out, struct cJSON *json,
                                         const char *path, const char *folder,
                                         enum msc_config_code code);
void msc_config_destroy(struct msc_config *config); // accepts NULL

enum msc_log_level msc_config_log_level(const struct msc_config *config);
// Finds an entry by name ("quantize[1]"); the message of MSC_E_INVALID lists the entries.
enum msc_status msc_config_find_entry(size_t *out, const struct msc_config *config,
                                      const char *name);

// Resolves `agent` of an entry (NULL: not given) to the form of msc_config_entry.agent, with all
// parameters. `name` is the name of the entry, for error messages. *out is owned by the caller.
enum msc_status msc_config_resolve_agent(struct msc_config *config, const char *name,
                                         const struct cJSON *object, struct cJSON **out);

// The resolved configuration as JSON, with paths relative to `folder` and every default, except
// defaults that only msc_env_complete adds. *out is owned by the caller.
enum msc_status msc_config_to_json(const struct msc_config *config, struct cJSON **out,
                                   const char *folder);
// Like msc_config_to_json, but with only the given entry. The result goes into the header of the
// entry's record. The entry need not be one of the configuration's own. The environment has the
// given keys and the defaults in its parameter table.
enum msc_status msc_config_entry_to_json(const struct msc_config *config,
                                         const struct msc_config_entry *entry, struct cJSON **out,
                                         const char *folder);
// Keys of the header that may change between launches of one search (msc_search_options): file
// paths (the contents are hashed), how results are shown, and outputs.
extern const char *const msc_config_free_keys[];

// Appends help on every key, section by section: meaning, default and range.
void msc_config_help(struct msc_str *out);
// Describes every key for programs: a list of {"section", "keys"}. msc_param_describe defines the
// form of the keys.
enum msc_status msc_config_describe(struct cJSON *list);
// The JSON Schema (draft 7) of a configuration, with which editors complete and check one. It has
// the keys of the built-in environments and agents; those of libraries and programs are free. *out
// is owned by the caller.
enum msc_status msc_config_schema(struct cJSON **out);

MSC_PUBLIC_END

#endif
