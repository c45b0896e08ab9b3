// How an agent came to its trials, told by replay: it is built anew from a record, asked again and told
// what the record holds, and says of each proposal how it was made (msc_proposal.origin). Nothing is
// evaluated or written.
//
//     cJSON *phases;
//     MSC_TRY(msc_phases_describe(&phases, &(struct msc_phases_options){.record = record,
//         .space = msc_env_space(env), .goal = &goal, .agent_config = agent}));
//     msc_phases_text(&text, phases, 0);
#ifndef MSC_SEARCH_PHASES_H
#define MSC_SEARCH_PHASES_H

#include "records/record.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_phases_options {
    const struct msc_record *record;
    const struct msc_space *space;    // the environment's: agents go by its costs
    const struct cJSON *agent_config; // as for msc_search_run
    const char *agent_folder;
};

// *out, owned by the caller, is a list of phases, of 32, 32, 64, 128, ... trials: `first` and `last` id,
// `origins`: for each word of the agent's `trials` and how many of them were `best` so far. Trials that
// it never asked for (baselines, those of other records, retries) count as "given"; those that it says
// nothing of as "other". MSC_E_STATE: the record does not replay.
enum msc_status msc_phases_describe(struct cJSON **out, const struct msc_phases_options *options);
// As a table, folded to `n_columns` (0: however wide).
enum msc_status msc_phases_text(struct msc_str *out, const struct cJSON *phases, size_t n_columns);

MSC_PUBLIC_END

#endif
