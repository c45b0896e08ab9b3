// A child program that exchanges lines through its standard input and output. Its standard error is
// the caller's. It is started without a shell, in a process group of its own: a Ctrl-C meant for
// its parent does not end it, and its own children end with it. It is killed when the thread that
// started it ends for whatever reason.
//
// The program has ended when its process has ended. Children that keep its output open are not
// waited for, and what they write afterwards is not read.
#ifndef MSC_BASE_PROCESS_H
#define MSC_BASE_PROCESS_H

#include "base/status.h"

#include <stddef.h>

struct cJSON;
struct msc_cancel;
struct msc_process;
struct msc_str;

// Starts argv[0] (searched in PATH) with the NULL-terminated `argv` in `folder` (NULL: the
// current folder). *out is owned by the caller (msc_process_stop). MSC_E_NOT_FOUND or MSC_E_IO if
// it cannot be started; the message begins with the program's name.
enum msc_status msc_process_start(struct msc_process **out, const char *const argv[],
                                  const char *folder);
// The same for a program that must clean up elsewhere: if the starting thread ends, it gets SIGTERM
// instead of SIGKILL.
enum msc_status msc_process_start_gently(struct msc_process **out, const char *const argv[]);
// From now on waiting polls `cancel` (borrowed until stop; NULL: none), which also counts as a
// beat. It ends with MSC_E_CANCELLED once the request has reached `level`, 1 or 2.
void msc_process_set_cancel(struct msc_process *process, const struct msc_cancel *cancel,
                            int level);
// Writes all bytes. MSC_E_IO if the program does not read for `timeout_s`. If the program has
// ended, only the next receive reports it.
enum msc_status msc_process_send(struct msc_process *process, const char *text, size_t length,
                                 double timeout_s);
// The next line without its newline, borrowed until the next call. MSC_E_IO if the program ended
// (the message says how) or wrote no line for `timeout_s`; MSC_E_FORMAT if a line is too long.
enum msc_status msc_process_receive(struct msc_process *process, const char **line, size_t *length,
                                    double timeout_s);
// Without waiting, for callers that serve several programs: sends as much as the input takes now;
// returns the next line, or NULL if no complete line is there yet. Errors as above.
enum msc_status msc_process_send_some(struct msc_process *process, const char *text, size_t length,
                                      size_t *n_sent);
enum msc_status msc_process_next_line(struct msc_process *process, const char **line,
                                      size_t *length);
// The descriptors to poll for these.
int msc_process_input(const struct msc_process *process);
int msc_process_output(const struct msc_process *process);
// For programs that answer each request, a line of JSON, with another. Sends a request, and
// appends its newline.
enum msc_status msc_process_request(struct msc_process *process, struct msc_str *request,
                                    double timeout_s);
// *answer, an object, is owned by the caller. MSC_E_FORMAT if the line is not a JSON object;
// MSC_E_STATE with the text of an answer {"error":"text"}.
enum msc_status msc_process_answer(struct msc_process *process, struct cJSON **answer,
                                   double timeout_s);
// Runs a program that reads no input, until it ends, for at most `timeout_s`. A program that
// succeeds may leave its children running; if it fails, they are ended. *last is the last line of
// its output that is not blank, trimmed. MSC_E_STATE if it failed (exit status, signal), wrote
// nothing or took too long; otherwise errors as of msc_process_start.
enum msc_status msc_process_run(struct msc_str *last, const char *const argv[], const char *folder,
                                double timeout_s, const struct msc_cancel *cancel, int level);
// Runs a program that reads no input, until it ends, and drops its output. `environment` is a
// NULL-terminated list of NAME=VALUE to add to ours. Errors as of msc_process_run, but MSC_E_IO
// if it failed or took too long.
enum msc_status msc_process_call(const char *const argv[], const char *const environment[],
                                 double timeout_s, const struct msc_cancel *cancel, int level);
// Closes its input, waits `grace_s` for it to end, then ends by signals the program and what is
// left of its group. Accepts NULL.
void msc_process_stop(struct msc_process *process, double grace_s);
// The same for n programs at once, in the time that one takes.
void msc_process_stop_all(struct msc_process *const processes[], size_t n, double grace_s);

#endif
