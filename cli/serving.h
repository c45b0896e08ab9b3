// Serves pages in this process, or in a child process next to a search, so that an error of the
// page cannot stop the search.
#ifndef MSC_CLI_SERVING_H
#define MSC_CLI_SERVING_H

#include "cli/cli.h"

struct msc_process;

// Serves records, or folders of them, until SIGINT, SIGTERM or SIGHUP. First prints "page:
// ADDRESS". `port` < 0: any free port.
enum msc_status msc_cli_serve(const char *const paths[], size_t n, int64_t port);

// Starts `mscgym report --serve` for the workspace of a configuration or the folder of a record,
// and for `record` if it is not NULL, and prints its address. The process *out ends with
// msc_process_stop, or when this process ends.
enum msc_status msc_cli_start_page(struct msc_process **out, const struct msc_cli_call *call,
                                   const char *path, const char *record, int64_t port);

#endif
