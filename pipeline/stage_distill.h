// The stage `distill` after a search: improves the weights of the plan that is delivered.
#ifndef MSC_PIPELINE_STAGE_DISTILL_H
#define MSC_PIPELINE_STAGE_DISTILL_H

#include "pipeline/news.h"

struct msc_quantize_distill_options;

// Improves the weights of a trial's plan, or takes them from RECORD.distill.json, and adds them to
// a report. *plan, owned by the caller, is the improved plan as a strategy's JSON; NULL: the
// trial's own plan is delivered, for a reason given in the report or the log. MSC_E_CANCELLED:
// cancelled. MSC_E_LOST: the device is lost. Other failures are only logged.
enum msc_status msc_stage_distill(struct cJSON **plan, const struct msc_session *session,
                                  struct msc_news *news, struct cJSON *report,
                                  const struct msc_record *record, const struct msc_trial *trial);

// Reads the options of the stage from an entry, which must have them.
void msc_stage_distill_options(struct msc_quantize_distill_options *o,
                               const struct msc_config_entry *e);

#endif
