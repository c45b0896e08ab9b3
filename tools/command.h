// A user's program that scores a model: the last line of its standard output is a number.
//
//     "command": ["./score.py", "{model}"]
//     "command": {"argv": ["./score.py", "--model={model}"], "maximise": true, "timeout": "10m"}
//
//     "command": {"argv": ["python3", "score.py", "{outputs}"], "lasting": true}
//
//     MSC_TRY(msc_command_read(&command, json, "rerank.command", &arena));
//     MSC_TRY(msc_command_run(&value, &command, &files, folder, cancel, 1));
//     msc_command_finish(&command);
//
// The program is started without a shell and reads no input. It is ended, with its child
// processes, after its time limit, on a stop request, or when this process dies.
//
// A lasting program is started once, and answers lines of JSON. Its words are not changed. A
// request has the files that they name:
//
//     {"method":"measure","outputs":"/tmp/…/outputs.safetensors"}    {"value":0.91}
//     {"method":"done"}                                              no answer: the program ends
#ifndef MSC_TOOLS_COMMAND_H
#define MSC_TOOLS_COMMAND_H

#include "base/alloc.h"
#include "base/param.h"
#include "base/status.h"

#include <stdbool.h>

struct cJSON;
struct msc_cancel;
struct msc_program;

struct msc_command {
    const char **argv; // NULL-terminated, in the arena; may contain {model} and {outputs}
    bool is_maximised;
    double timeout_s;
    struct msc_program *program; // a lasting program, in the arena; NULL: one run for each number
};

// Absolute paths that replace the placeholders. NULL: there is no such file.
struct msc_command_files {
    const char *model, *outputs;
};

// The keys of a command given as an object.
extern const struct msc_param msc_command_params[];

// MSC_E_INVALID: a wrong key, no words, or no placeholder among the words; the message begins
// with `where`.
enum msc_status msc_command_read(struct msc_command *out, const struct cJSON *value,
                                 const char *where, struct msc_arena *arena);
// Writes the command as an object with every key, for a record's header.
enum msc_status msc_command_write(const struct msc_command *command, struct cJSON *object);
// Does a word contain the placeholder `file` ("{model}" or "{outputs}")?
bool msc_command_wants(const struct msc_command *command, const char *file);

// Runs in `folder` (NULL: the current one). MSC_E_STATE: the program failed, gave no number or took
// too long; the message names the program and the cause. MSC_E_NOT_FOUND: no such program;
// MSC_E_CANCELLED: the stop request reached `level`. A lasting program that ends is started again
// for the next number.
enum msc_status msc_command_run(double *out, const struct msc_command *command,
                                const struct msc_command_files *files, const char *folder,
                                const struct msc_cancel *cancel, int level);
// Ends a lasting program. Accepts a zeroed command.
void msc_command_finish(struct msc_command *command);

#endif
