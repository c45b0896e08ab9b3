// Prints agents or environments with their parameters: all of them, or a single one.
#ifndef MSC_CLI_PLUGINS_H
#define MSC_CLI_PLUGINS_H

#include "base/param.h"
#include "cli/cli.h"
#include "env/api/trial.h"

struct msc_cli_plugin {
    const char *name, *summary;
    unsigned version;
    const struct msc_param *params;
    const struct msc_metric *(*metric)(size_t index); // i-th metric of an environment, or NULL
};

struct msc_cli_plugins {
    struct msc_cli_common common;
    const char *name; // print only the plug-in of this name; NULL: all
    bool check;       // check the rules (cli/checking.h)
    double limit_s;
};

// `kind` begins error messages ("agent").
int msc_cli_show_plugins(const struct msc_cli_call *call, const struct msc_cli_plugins *values,
                         const struct msc_cli_plugin plugins[], size_t n, const char *kind);

// Runs `show` on the shared library values->name in a child process. Loading a library runs its
// code, and a crash is then reported as an error. Returns the exit code.
int msc_cli_show_library(const struct msc_cli_call *call, const struct msc_cli_plugins *values,
                         int (*show)(const struct msc_cli_call *call,
                                     const struct msc_cli_plugins *values));

#endif
