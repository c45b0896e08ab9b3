// Pages that are served while something runs: by this process, or by a child beside a search, which no
// fault of the page can hurt.
#ifndef MSC_CLI_SERVING_H
#define MSC_CLI_SERVING_H

#include "cli/cli.h"

struct msc_process;

// Serves records, or folders of them, until SIGINT, SIGTERM or SIGHUP; prints the address first, as "page:
// ADDRESS". `port` < 0: any that is free.
enum msc_status msc_cli_serve(const char *const paths[], size_t n, int64_t port);

// Starts `mscgym report --serve` for the workspace of a configuration, or the folder of a record (and of
// `record`, if not NULL), and says its address. *out is ended by msc_process_stop, or with this process.
enum msc_status msc_cli_start_page(struct msc_process **out, const struct msc_cli_call *call,
                                   const char *path, const char *record, int64_t port);

#endif
