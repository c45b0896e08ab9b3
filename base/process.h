// A child program that exchanges lines through its standard input and output. Its standard error is
// the caller's. The program is started without a shell, in a process group of its own. A Ctrl-C in
// the terminal therefore does not end it, and its own children end with it. If the thread that
// started the program ends for any reason, the program is killed.
//
// The program has ended when its process has ended. Nothing waits for children that keep its output
// open, and nothing reads what they write afterwards.
#ifndef MSC_BASE_PROCESS_H
#define MSC_BASE_PROCESS_H

#include "base/status.h"

#include <stddef.h>

struct cJSON;
struct msc_cancel;
struct msc_process;
struct msc_str;

// Starts argv[0] (searched in PATH) with the NULL-terminated `argv` in `folder` (NULL: the current
// folder). The caller owns *out (msc_process_stop). MSC_E_NOT_FOUND or MSC_E_IO if the program
// cannot be started; the message begins with the program's name.
enum msc_status msc_process_start(struct msc_process **out, const char *const argv[],
                                  const char *folder);
// Like msc_process_start, for a program that must clean up elsewhere: if the starting thread ends,
// the program gets SIGTERM instead of SIGKILL.
enum msc_status msc_process_start_gently(struct msc_process **out, const char *const argv[]);
// After this call, waiting polls `cancel` (borrowed until stop; NULL: none), which also counts as a
// beat. Waiting ends with MSC_E_CANCELLED once the request has reached `level`, 1 or 2.
void msc_process_set_cancel(struct msc_process *process, const struct msc_cancel *cancel,
                            int level);
// Writes all bytes. MSC_E_IO if the program does not read for `timeout_s`. If the program has
// ended, only the next receive reports it.
enum msc_status msc_process_send(struct msc_process *process, const char *text, size_t length,
                                 double timeout_s);
// Receives the next line without its newline, borrowed until the next call. MSC_E_IO if the program
// ended (the message says how) or wrote no line for `timeout_s`. MSC_E_FORMAT if a line is too
// long.
enum msc_status msc_process_receive(struct msc_process *process, const char **line, size_t *length,
                                    double timeout_s);
// Send and receive without waiting, for callers that serve several programs. Sending writes as much
// as the input accepts now. Receiving returns the next line, or NULL if no complete line has
// arrived yet. Errors are those of msc_process_send and msc_process_receive.
enum msc_status msc_process_send_some(struct msc_process *process, const char *text, size_t length,
                                      size_t *n_sent);
enum msc_status msc_process_next_line(struct msc_process *process, const char **line,
                                      size_t *length);
// The descriptors to poll before sending (input) and receiving (output) without waiting.
int msc_process_input(const struct msc_process *process);
int msc_process_output(const struct msc_process *process);
// For programs whose requests and answers are single lines of JSON. Appends a newline to a request
// and sends the request.
enum msc_status msc_process_request(struct msc_process *process, struct msc_str *request,
                                    double timeout_s);
// Receives an answer. The caller owns *answer, an object. MSC_E_FORMAT if the line is not a JSON
// object. If the answer is {"error":"text"}, MSC_E_STATE with that text.
enum msc_status msc_process_answer(struct msc_process *process, struct cJSON **answer,
                                   double timeout_s);
// Runs a program without input until it ends, for at most `timeout_s`. If the program succeeds, its
// children may keep running; if it fails, they are ended. *last is the last non-blank line of its
// output, trimmed. MSC_E_STATE if the program failed (exit status, signal), wrote nothing or took
// too long; otherwise errors as for msc_process_start.
enum msc_status msc_process_run(struct msc_str *last, const char *const argv[], const char *folder,
                                double timeout_s, const struct msc_cancel *cancel, int level);
// Runs a program without input until it ends, and discards its output. `environment` is a
// NULL-terminated list of NAME=VALUE to add to the caller's environment. Errors as for
// msc_process_run, but MSC_E_IO if the program failed or took too long.
enum msc_status msc_process_call(const char *const argv[], const char *const environment[],
                                 double timeout_s, const struct msc_cancel *cancel, int level);
// Closes the program's input, waits `grace_s` for it to end, then ends the program and the rest of
// its group by signals. Accepts NULL.
void msc_process_stop(struct msc_process *process, double grace_s);
// Stops n programs at once, in the time that stopping one takes.
void msc_process_stop_all(struct msc_process *const processes[], size_t n, double grace_s);

#endif
