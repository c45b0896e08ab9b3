// A program run as a child, spoken to line by line over its standard input and output. Its standard
// error is the caller's. Started without a shell; it runs in a process group of its own, so that a
// Ctrl-C meant for its parent does not end it, and so that it is ended with what it started itself.
// It is killed when the thread that started it ends, however that comes about.
//
// A program has ended when its process has: children that hold its output open are not waited for, and
// what they write after that is not read.
#ifndef MSC_BASE_PROCESS_H
#define MSC_BASE_PROCESS_H

#include "base/status.h"

#include <stddef.h>

struct cJSON;
struct msc_cancel;
struct msc_process;
struct msc_str;

// Starts argv[0] (searched in PATH) with the NULL-terminated `argv` in `folder` (NULL: the current
// one). *out is owned by the caller (msc_process_stop). MSC_E_NOT_FOUND or MSC_E_IO when it cannot
// be started; the text begins with the program's name.
enum msc_status msc_process_start(struct msc_process **out, const char *const argv[],
                                  const char *folder);
// The same for a program that has something to end elsewhere when it ends: it is told to by SIGTERM.
enum msc_status msc_process_start_gently(struct msc_process **out, const char *const argv[]);
// From now on waiting polls `cancel` (borrowed until stop; NULL: nothing), which also tells that we
// live, and ends with MSC_E_CANCELLED once it has reached `level`, 1 or 2.
void msc_process_set_cancel(struct msc_process *process, const struct msc_cancel *cancel,
                            int level);
// Writes all bytes. MSC_E_IO when the program does not read for `timeout_s`; one that is gone shows
// at the next receive.
enum msc_status msc_process_send(struct msc_process *process, const char *text, size_t length,
                                 double timeout_s);
// The next line without its newline, borrowed until the next call. MSC_E_IO when the program ended
// (the text says how) or wrote no line for `timeout_s`; MSC_E_FORMAT for a line without end.
enum msc_status msc_process_receive(struct msc_process *process, const char **line, size_t *length,
                                    double timeout_s);
// Without waiting, for who speaks with several: writes what the program's input takes at once; the next
// line, or NULL where there is no whole one yet. Errors as above.
enum msc_status msc_process_send_some(struct msc_process *process, const char *text, size_t length,
                                      size_t *n_sent);
enum msc_status msc_process_next_line(struct msc_process *process, const char **line,
                                      size_t *length);
// What to poll for these.
int msc_process_input(const struct msc_process *process);
int msc_process_output(const struct msc_process *process);
// The same for programs that take a request and give an answer, each a line of JSON. The request
// gets its newline here.
enum msc_status msc_process_request(struct msc_process *process, struct msc_str *request,
                                    double timeout_s);
// *answer, an object, is owned by the caller. MSC_E_FORMAT when the line is none; MSC_E_STATE with
// the text of an answer {"error":"text"}.
enum msc_status msc_process_answer(struct msc_process *process, struct cJSON **answer,
                                   double timeout_s);
// Runs a program that reads nothing to its end, within `timeout_s`. A program that succeeds may leave
// others running; where it fails, they are ended with it. *last is the last line of its standard output that is not blank, without blanks around it.
// MSC_E_STATE when it failed (exit status, signal), said nothing or took too long; else as
// msc_process_start.
enum msc_status msc_process_run(struct msc_str *last, const char *const argv[], const char *folder,
                                double timeout_s, const struct msc_cancel *cancel, int level);
// Runs a program that reads nothing to its end, and drops what it writes. `environment` is a
// NULL-terminated list of NAME=VALUE that is set for it besides ours. Errors as of msc_process_run, but
// MSC_E_IO where it failed or took too long.
enum msc_status msc_process_call(const char *const argv[], const char *const environment[],
                                 double timeout_s, const struct msc_cancel *cancel, int level);
// Closes its input, waits `grace_s` for its end, then ends by signals what is left of it and of the
// programs in its group. Accepts NULL.
void msc_process_stop(struct msc_process *process, double grace_s);
// The same for n of them, in the time that one takes.
void msc_process_stop_all(struct msc_process *const processes[], size_t n, double grace_s);

#endif
