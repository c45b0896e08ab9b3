// A program of the user's that answers requests, each a line of JSON: agents and environments in any
// language.
//
//     struct msc_program p = {.kind = "agent process", .timeout_s = 60};
//     MSC_TRY(msc_program_read(&p, command, "agent.command", arena));
//     MSC_TRY(msc_program_start(&p, folder, NULL));
//     msc_str_printf(&p.request, "{\"method\":\"ask\",\"max\":%zu}", max);
//     status = msc_program_exchange(&p, &answer);
//     ... msc_program_name_error(&p, status, "ask") ...
//     msc_program_finish(&p);
#ifndef MSC_BASE_PROGRAM_H
#define MSC_BASE_PROGRAM_H

#include "base/str.h"

struct cJSON;
struct msc_arena;
struct msc_cancel;
struct msc_process;

struct msc_program {
    const char *kind; // begins error texts
    double timeout_s; // that one answer may take
    const char **argv;
    const char *name;            // for error texts: the whole command
    struct msc_process *process; // NULL: it does not run
    struct msc_str request;      // kept for its memory
};

// The words of a list as a NULL-terminated array in the arena. MSC_E_INVALID, its text beginning with
// `where`: it is no list of texts, or has none. `example` stands in that text.
enum msc_status msc_program_read_words(const char ***out, const struct cJSON *value,
                                       const char *where, const char *example,
                                       struct msc_arena *arena);
// Fills argv and name.
enum msc_status msc_program_read(struct msc_program *p, const struct cJSON *command,
                                 const char *where, const char *example, struct msc_arena *arena);
// Starts it in `folder` (NULL: the current one). `cancel` (may be NULL) stops waiting at level 2.
// Errors are those of msc_process_start.
enum msc_status msc_program_start(struct msc_program *p, const char *folder,
                                  const struct msc_cancel *cancel);
// Sends p->request, to which the next one is to be written anew; takes the answer, owned by the caller.
// Errors are those of msc_process_request and msc_process_answer.
enum msc_status msc_program_exchange(struct msc_program *p, struct cJSON **answer);
// `status`, its text, unless it is MSC_OK, with the program and what it was asked before it.
enum msc_status msc_program_name_error(const struct msc_program *p, enum msc_status status,
                                       const char *method);
// Says {"method":"done"} and ends what has not ended by itself two seconds later. Accepts one that does
// not run.
void msc_program_stop(struct msc_program *p);
// Ends it at once; it may be started again.
void msc_program_kill(struct msc_program *p);
void msc_program_finish(struct msc_program *p); // stops it and frees; accepts zeroed memory

#endif
