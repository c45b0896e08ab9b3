// A log that goes to a file and is handed on to another log.
//
//     struct msc_log_file *file;
//     MSC_TRY(msc_log_file_open(&file, "msc_workspace/MSC_LOG", MSC_LOG_INFO, &log));
//     msc_log(msc_log_file_log(file), MSC_LOG_INFO, "%zu tasks", n);
//     msc_log_file_close(file);
//
// Each line in the file has the time before it. Lines are appended, whole, by one write each.
#ifndef MSC_PIPELINE_LOG_FILE_H
#define MSC_PIPELINE_LOG_FILE_H

#include "base/log.h"

struct msc_log_file;

// `path` NULL: no file, lines are only handed on. `next` (may be NULL) is borrowed until close and
// gets what its own level lets through. A pipe that nobody reads from is MSC_E_IO; lines that a slow
// reader leaves no room for are lost. *out is owned by the caller.
enum msc_status msc_log_file_open(struct msc_log_file **out, const char *path,
                                  enum msc_log_level level, const struct msc_log *next);
const struct msc_log *msc_log_file_log(const struct msc_log_file *file);
// The same without handing on: for what is shown in another way.
const struct msc_log *msc_log_file_alone(const struct msc_log_file *file);
void msc_log_file_close(struct msc_log_file *file); // accepts NULL

#endif
