// Ends all remaining processes of a session. Called by the process that started the session's
// leader.
#ifndef MSC_SUPERVISE_PROCESS_SESSION_H
#define MSC_SUPERVISE_PROCESS_SESSION_H

#include <sys/types.h>

// Sends SIGTERM to all processes of the session, and SIGKILL to those that remain a second later. A
// program that opened its own session continues. Call it before or directly after waiting for the
// session's leader, so that the leader's process id cannot have been reused.
void msc_session_end(pid_t session);

#endif
