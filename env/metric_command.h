// The metric `command`: a number that a user's program gives for a trial's model or outputs
// (tools/command.h).
//
//     const struct msc_metric_command c = {.command = &z->command, .distill = d, .edits = edits,
//                                          .save = save_model, .payload = &model};
//     MSC_TRY(msc_metric_command_run(&value, &c, host));
#ifndef MSC_ENV_METRIC_COMMAND_H
#define MSC_ENV_METRIC_COMMAND_H

#include "env/distill.h"
#include "tools/command.h"

// The parameter that names the program.
#define MSC_COMMAND_PARAM(at)                                                                      \
    {                                                                                              \
        .name = "command",                                                                         \
        .help = "program of the metric command: [\"./score.py\", \"{model}\"], or an object of "   \
                "argv, maximise, timeout and lasting",                                             \
        .offset = (at), .type = MSC_PARAM_OBJECT                                                   \
    }

struct msc_metric_command {
    const struct msc_command *command;
    struct msc_distill *distill;         // computes the outputs for {outputs}
    const struct msc_edit *const *edits; // of the trial; NULL: the float model
    // Writes the trial's model to a file, for {model}.
    enum msc_status (*save)(const char *path, void *payload);
    void *payload;
};

// Writes the files that the command uses, runs it (msc_command_run) and removes the files.
enum msc_status msc_metric_command_run(double *out, const struct msc_metric_command *c,
                                       const struct msc_env_host *host);

#endif
