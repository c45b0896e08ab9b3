// Writes the text of `mscgym watch`: a few lines.
#ifndef MSC_CLI_WATCHING_H
#define MSC_CLI_WATCHING_H

#include "base/status.h"
#include "base/str.h"
#include "results/follow.h"

// Writes the state as lines of at most n_columns characters (0: 80; less than 40: 40).
enum msc_status msc_cli_write_watch(struct msc_str *out, struct msc_follow *follow,
                                    size_t n_columns);

#endif
