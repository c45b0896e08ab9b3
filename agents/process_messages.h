// JSON messages for agents that are programs: writes requests and reads the proposals of an answer.
// agent_process.c shows the dialogue.
#ifndef MSC_AGENTS_PROCESS_MESSAGES_H
#define MSC_AGENTS_PROCESS_MESSAGES_H

#include "env/api/trial.h"

struct cJSON;
struct msc_str;

// Each function appends one JSON object without a newline. `params` may be NULL.
void msc_process_write_init(struct msc_str *out, const struct msc_space *space,
                            const struct msc_goal *goal, uint64_t seed, const struct cJSON *params);
void msc_process_write_tell(struct msc_str *out, const struct msc_space *space,
                            const struct msc_goal *goal, const struct msc_trial *trial);

// Reads the answer to an ask. MSC_E_FORMAT: the message names the proposal and its fault.
enum msc_status msc_process_read_proposals(const struct cJSON *answer,
                                           const struct msc_space *space, struct msc_proposal out[],
                                           size_t max, size_t *n, bool *is_done);

#endif
