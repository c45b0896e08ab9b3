// Writes spaces, goals, points and outcomes as JSON for agents and environments that are programs
// (docs/agents.md, docs/environments.md).
#ifndef MSC_ENV_API_MESSAGE_H
#define MSC_ENV_API_MESSAGE_H

#include "env/api/trial.h"

struct msc_str;

// Each function appends one JSON value without a newline.
void msc_message_write_choices(struct msc_str *out, const uint32_t values[], size_t n);
void msc_message_write_space(struct msc_str *out, const struct msc_space *space);
void msc_message_write_goal(struct msc_str *out, const struct msc_space *space,
                            const struct msc_goal *goal);
void msc_message_write_outcome(struct msc_str *out, const struct msc_space *space,
                               const struct msc_goal *goal, const struct msc_outcome *outcome);

#endif
