// Ends HTTP connections that take too long. The server's own timeout restarts with each byte, so a
// client that sends a request byte by byte could hold a connection for ever.
//
// The server's thread notes when a connection opens, when its request is complete, when its answer
// is sent and when it closes. Another thread ends connections that take too long between two of
// these events.
#ifndef MSC_REPORT_PATIENCE_H
#define MSC_REPORT_PATIENCE_H

#include <pthread.h>
#include <stddef.h>

struct msc_patience_wait {
    int socket; // -1: the slot is free
    double since_s;
    double paused_s; // since when the server itself works on the request; 0: it does not
};

struct msc_patience {
    pthread_mutex_t lock;
    size_t n;
    struct msc_patience_wait *waits; // [n], owned by the caller
};

void msc_patience_init(struct msc_patience *p, struct msc_patience_wait waits[], size_t n);
void msc_patience_finish(struct msc_patience *p);
// Notes a new connection. NULL: all slots are taken, so this connection has no time limit.
struct msc_patience_wait *msc_patience_open(struct msc_patience *p, int socket);
// The request is complete, or its answer was sent: the time limit starts again. `wait` may be NULL.
void msc_patience_renew(struct msc_patience *p, struct msc_patience_wait *wait);
// The server begins and ends work on the request. The time between does not count.
void msc_patience_pause(struct msc_patience *p, struct msc_patience_wait *wait);
void msc_patience_go_on(struct msc_patience *p, struct msc_patience_wait *wait);
void msc_patience_close(struct msc_patience *p, struct msc_patience_wait *wait);
// Ends connections without an event for `limit_s` seconds.
void msc_patience_end_late(struct msc_patience *p, double limit_s);

#endif
