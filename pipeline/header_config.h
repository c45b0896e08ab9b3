// The configuration in the header of a record: written when a search begins, read to open a record
// without its configuration file, and compared when the search continues.
#ifndef MSC_PIPELINE_HEADER_CONFIG_H
#define MSC_PIPELINE_HEADER_CONFIG_H

#include "config/config.h"
#include "pipeline/processor_options.h"
#include "records/record.h"

// The configuration of one entry, with paths relative to the folder of its record. *out is owned by
// the caller.
enum msc_status msc_header_config_make(struct cJSON **out, const struct msc_config *config,
                                       const struct msc_config_entry *e);

// Reads the configuration back. Its only entry names the record by its original path. Only two
// kinds of options are used: which code may run, and where the code is. *out is owned by the
// caller. MSC_E_UNSUPPORTED: the header has no configuration.
enum msc_status msc_header_config_open(struct msc_config **out, const char *path,
                                       const struct msc_processor_options *options);

// Compares the configuration of an entry with the record's, before anything is computed. The entry
// takes the record's defaults. If the environments are equal, the entry also takes the record's
// form of the environment. The error names the key that differs.
enum msc_status msc_header_config_check(struct msc_config *config, struct msc_config_entry *e,
                                        const struct msc_record *record);
// Gives the entry the agent in `config`, the configuration of a record: the whole agent if the
// entry names none (the default may have changed), else only the parameters that the entry does not
// give.
enum msc_status msc_header_config_keep_agent(struct msc_config_entry *e,
                                             const struct cJSON *config);

#endif
