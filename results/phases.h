// Shows how an agent arrived at its trials, by replay: the agent is created again, asked again, and
// observes the record's results. It names the origin of each proposal (msc_proposal.origin).
// Nothing is evaluated or written.
//
//     MSC_TRY(msc_phases_add(report, &(struct msc_phases_options){.record = record,
//         .space = msc_env_space(env), .agent_config = agent}));
//     msc_phases_text(&text, report, 0);
#ifndef MSC_RESULTS_PHASES_H
#define MSC_RESULTS_PHASES_H

#include "records/record.h"

MSC_PUBLIC_BEGIN

struct cJSON;
struct msc_str;

struct msc_phases_options {
    const struct msc_record *record;
    const struct msc_space *space;    // the environment's space, because agents use its costs
    const struct cJSON *agent_config; // as for msc_search_run
    const char *agent_folder;
};

// Adds `phases` to the object, a list of phases of 32, 32, 64, 128, ... trials. Each has the ids
// `first` and `last`, and `origins`: for each origin that the agent names, the number of `trials`,
// and the number that were the `best` so far. Trials that the agent did not propose (baselines,
// trials of other records, retries) count as "given". Proposals without an origin count as "other".
// Also adds the agent's remarks as `learnt`, in place of an earlier list; no list if there are
// none.
// MSC_E_STATE: the record does not replay.
enum msc_status msc_phases_add(struct cJSON *object, const struct msc_phases_options *options);
// Writes a table of at most `n_columns` characters a line (0: any width), and the remarks.
enum msc_status msc_phases_text(struct msc_str *out, const struct cJSON *report, size_t n_columns);

MSC_PUBLIC_END

#endif
