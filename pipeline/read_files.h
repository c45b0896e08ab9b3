// The files that a configuration reads: model, samples, code, tables, strategies. No output may
// replace them, and stages run again if their contents change.
#ifndef MSC_PIPELINE_READ_FILES_H
#define MSC_PIPELINE_READ_FILES_H

#include "base/file_set.h"
#include "config/config.h"
#include "pipeline/processor_options.h"

// True if there is a model and one of the first `end` entries needs it.
bool msc_read_files_has_model(const struct msc_config *config, size_t end);

// Adds the files that the first `end` entries and the options read.
enum msc_status msc_read_files_add(struct msc_file_set *files, const struct msc_config *config,
                                   size_t end, const struct msc_processor_options *options);
// Adds the files that are read to measure a trial of a record. `config` is the record's
// configuration. Does not add the record itself.
enum msc_status msc_read_files_add_measured(struct msc_file_set *files,
                                            const struct msc_config *config);

#endif
