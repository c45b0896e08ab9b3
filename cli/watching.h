// Writes the text of `mscgym watch`: a few lines.
#ifndef MSC_CLI_WATCHING_H
#define MSC_CLI_WATCHING_H

#include "base/status.h"
#include "base/str.h"
#include "results/follow.h"

// Lines have at most n_columns columns, but at least 40; 0 means 80.
enum msc_status msc_cli_write_watch(struct msc_str *out, struct msc_follow *follow,
                                    size_t n_columns);

#endif
