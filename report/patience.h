// How long connections may take: who sends a request byte by byte would hold one for ever, as each byte
// counts as a sign of life.
//
// The server's thread notes a connection when it opens, when a request is there, when its answer is sent
// and when it closes. Another thread ends those that take too long from one of these to the next.
#ifndef MSC_REPORT_PATIENCE_H
#define MSC_REPORT_PATIENCE_H

#include <pthread.h>
#include <stddef.h>

struct msc_patience_wait {
    int socket; // -1: nobody has the place
    double since_s;
};

struct msc_patience {
    pthread_mutex_t lock;
    size_t n;
    struct msc_patience_wait *waits; // [n]; the memory is the caller's
};

void msc_patience_init(struct msc_patience *p, struct msc_patience_wait waits[], size_t n);
void msc_patience_finish(struct msc_patience *p);
// NULL where all places are taken: that one is not watched.
struct msc_patience_wait *msc_patience_open(struct msc_patience *p, int socket);
// Accept NULL. Its request is there, or answered: the next part has all the time.
void msc_patience_renew(struct msc_patience *p, struct msc_patience_wait *wait);
void msc_patience_close(struct msc_patience *p, struct msc_patience_wait *wait);
// Ends connections of which nothing was noted for `limit_s`.
void msc_patience_end_late(struct msc_patience *p, double limit_s);

#endif
