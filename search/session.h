// The processes of one session: how whoever started its leader ends what the leader leaves behind.
#ifndef MSC_SEARCH_SESSION_H
#define MSC_SEARCH_SESSION_H

#include <sys/types.h>

// Ends all that live in the session, by SIGTERM and, what is still there a second later, by SIGKILL.
// A program that opened a session of its own wanted to be left alone, and is. The number must not
// have become another's: its leader has not been waited for, or only just.
void msc_session_end(pid_t session);

#endif
