// What `watch` shows: a few lines for people.
#ifndef MSC_CLI_WATCHING_H
#define MSC_CLI_WATCHING_H

#include "base/status.h"
#include "base/str.h"
#include "search/follow.h"

// Lines of at most n_columns columns, at least 40; 0: 80.
enum msc_status msc_cli_write_watch(struct msc_str *out, struct msc_follow *follow,
                                    size_t n_columns);

#endif
