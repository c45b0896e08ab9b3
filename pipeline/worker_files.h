// The files that workers on other machines read: the record of the search and the files that its
// header names.
#ifndef MSC_PIPELINE_WORKER_FILES_H
#define MSC_PIPELINE_WORKER_FILES_H

#include "pipeline/session.h"

struct msc_bridge;

// Passes these files to a bridge. The files are named by the paths in the record's header, because
// workers open them by these paths.
enum msc_status msc_worker_files_name(const struct msc_session *s, struct msc_bridge *bridge);

#endif
