// A log that writes to a file and passes lines on to another log.
//
//     struct msc_log_file *file;
//     MSC_TRY(msc_log_file_open(&file, "msc_workspace/MSC_LOG", MSC_LOG_INFO, &log));
//     msc_log(msc_log_file_log(file), MSC_LOG_INFO, "%zu tasks", n);
//     msc_log_file_close(file);
//
// Each line in the file begins with the time. A line is appended by a single write.
#ifndef MSC_PIPELINE_LOG_FILE_H
#define MSC_PIPELINE_LOG_FILE_H

#include "base/log.h"

struct msc_log_file;

// `path` NULL: no file, lines are only passed on. `next` (may be NULL) is borrowed until close and
// gets the lines that its own level allows. MSC_E_IO: no process reads from the pipe at `path`.
// Lines that do not fit in a pipe are lost. *out is owned by the caller.
enum msc_status msc_log_file_open(struct msc_log_file **out, const char *path,
                                  enum msc_log_level level, const struct msc_log *next);
const struct msc_log *msc_log_file_log(const struct msc_log_file *file);
// A log that writes to the same file but passes no lines on: for messages that the caller shows
// itself.
const struct msc_log *msc_log_file_alone(const struct msc_log_file *file);
void msc_log_file_close(struct msc_log_file *file); // accepts NULL

#endif
