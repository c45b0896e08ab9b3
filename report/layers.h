// Measures the delivered plan of a record layer by layer: the member `layers` of a record on a
// page.
//
//     MSC_TRY(msc_report_layers(&layers, "digits.jsonl", &(struct msc_layers_options){0}));
//
// Unlike the rest of a page, this loads the model and samples that the record names, and runs the
// network.
#ifndef MSC_REPORT_LAYERS_H
#define MSC_REPORT_LAYERS_H

#include "base/log.h"

#include <stdbool.h>

struct cJSON;

struct msc_layers_options {
    bool allow_plugins; // libraries and programs that the record names may run
    const struct msc_log *log;
};

// *out is as in model/layers.h, and owned by the caller. MSC_E_UNSUPPORTED: the search did not
// compress a network. Other errors are those of msc_record_plan_open and of loading the samples.
enum msc_status msc_report_layers(struct cJSON **out, const char *record,
                                  const struct msc_layers_options *options);

#endif
