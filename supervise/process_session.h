// Ends all processes that are left of a session, for the process that started its leader.
#ifndef MSC_SUPERVISE_PROCESS_SESSION_H
#define MSC_SUPERVISE_PROCESS_SESSION_H

#include <sys/types.h>

// Sends SIGTERM to all processes of the session, and SIGKILL to those that remain a second later. A
// program that opened a session of its own is left alone. The session's leader must not have been
// waited for, or only just now, so that its process id cannot have been reused.
void msc_session_end(pid_t session);

#endif
