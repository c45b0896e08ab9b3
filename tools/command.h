// A user's program that gives a number for a model: the last line of its standard output.
//
//     "command": ["./score.py", "{model}"]
//     "command": {"argv": ["./score.py", "--model={model}"], "maximise": true, "timeout": "10m"}
//
//     MSC_TRY(msc_command_read(&command, json, "rerank.command", &arena));
//     MSC_TRY(msc_command_run(&value, &command, &files, folder, cancel, 1));
//
// It is started without a shell, reads nothing, and is ended with what it has started itself when its
// time is up, when somebody wants us to stop, or when we die.
#ifndef MSC_TOOLS_COMMAND_H
#define MSC_TOOLS_COMMAND_H

#include "base/alloc.h"
#include "base/param.h"
#include "base/status.h"

#include <stdbool.h>

struct cJSON;
struct msc_cancel;

struct msc_command {
    const char **argv; // NULL-terminated, in the arena; {model} and {outputs} stand for files
    bool is_maximised;
    double timeout_s;
};

// What words stand for, as absolute paths; NULL: there is no such file.
struct msc_command_files {
    const char *model, *outputs;
};

// The keys of the object that a command may be.
extern const struct msc_param msc_command_params[];

// MSC_E_INVALID, its text beginning with `where`: a wrong key, no words, or words that name none of
// these files.
enum msc_status msc_command_read(struct msc_command *out, const struct cJSON *value,
                                 const char *where, struct msc_arena *arena);
// The same as an object with every key, for a record's header.
enum msc_status msc_command_write(const struct msc_command *command, struct cJSON *object);
// Does a word of it stand for "{model}", or "{outputs}"?
bool msc_command_wants(const struct msc_command *command, const char *file);

// Runs in `folder` (NULL: the current one). MSC_E_STATE with its name and what is wrong:
// it failed, gave no number, or took too long; MSC_E_NOT_FOUND: there is none; MSC_E_CANCELLED once
// the cancel has reached `level`.
enum msc_status msc_command_run(double *out, const struct msc_command *command,
                                const struct msc_command_files *files, const char *folder,
                                const struct msc_cancel *cancel, int level);

#endif
