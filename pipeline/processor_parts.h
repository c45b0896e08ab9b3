// Gives other parts of this program access to the inside of a processor.
#ifndef MSC_PIPELINE_PROCESSOR_PARTS_H
#define MSC_PIPELINE_PROCESSOR_PARTS_H

#include "base/status.h"

struct msc_file_set;
struct msc_processor;
struct msc_setup;

struct msc_setup *msc_processor__setup(const struct msc_processor *p); // borrowed
// Closes environment, model and samples that msc_processor_prepare has opened.
void msc_processor__release(struct msc_processor *p);
// Adds all files that the processor reads: configuration or record, model, samples, code.
enum msc_status msc_processor_files(struct msc_file_set *files, const struct msc_processor *p);

#endif
