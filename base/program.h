// A user's program that answers each request with a line of JSON. Agents and environments in any
// language run in this way.
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
    const char *kind; // beginning of error messages
    double timeout_s; // time limit for one answer
    const char **argv;
    const char *name;            // the whole command, for error messages
    struct msc_process *process; // NULL: not running
    struct msc_str request;      // kept between requests to save allocations
};

// The strings of a list as a NULL-terminated array in the arena. MSC_E_INVALID if `value` is empty
// or not a list of strings; the message begins with `where` and shows `example`.
enum msc_status msc_program_read_words(const char ***out, const struct cJSON *value,
                                       const char *where, const char *example,
                                       struct msc_arena *arena);
// Fills argv and name.
enum msc_status msc_program_read(struct msc_program *p, const struct cJSON *command,
                                 const char *where, const char *example, struct msc_arena *arena);
// Starts the program in `folder` (NULL: the current folder). `cancel` (may be NULL) stops waiting
// at level 2. Errors as for msc_process_start.
enum msc_status msc_program_start(struct msc_program *p, const char *folder,
                                  const struct msc_cancel *cancel);
// Sends p->request and receives the answer, which the caller owns. The caller clears p->request
// before writing the next request. Errors as for msc_process_request and msc_process_answer.
enum msc_status msc_program_exchange(struct msc_program *p, struct cJSON **answer);
// Returns `status`. If it is not MSC_OK, puts the program and the method before the message.
enum msc_status msc_program_name_error(const struct msc_program *p, enum msc_status status,
                                       const char *method);
// Sends {"method":"done"}, and ends the program if it still runs two seconds later. Does nothing if
// the program is not running.
void msc_program_stop(struct msc_program *p);
// Ends the program at once; it may be restarted.
void msc_program_kill(struct msc_program *p);
// stops the program and frees memory; accepts zeroed memory
void msc_program_finish(struct msc_program *p);

#endif
