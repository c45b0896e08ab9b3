#include "report/patience.h"

#include "base/clock.h"

#include <sys/socket.h>

void msc_patience_init(struct msc_patience *p, struct msc_patience_wait waits[], size_t n) {
    *p = (struct msc_patience){.n = n, .waits = waits};
    pthread_mutex_init(&p->lock, NULL);
    for (size_t i = 0; i < n; i++) {
        waits[i].socket = -1;
    }
}

void msc_patience_finish(struct msc_patience *p) {
    pthread_mutex_destroy(&p->lock);
}

struct msc_patience_wait *msc_patience_open(struct msc_patience *p, int socket) {
    struct msc_patience_wait *found = NULL;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n && !found; i++) {
        found = p->waits[i].socket < 0 ? &p->waits[i] : NULL;
    }
    if (found) {
        *found = (struct msc_patience_wait){.socket = socket, .since_s = msc_clock_seconds()};
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

static void set_wait(struct msc_patience *p, struct msc_patience_wait *wait, int socket) {
    if (wait) {
        pthread_mutex_lock(&p->lock);
        *wait = (struct msc_patience_wait){.socket = socket, .since_s = msc_clock_seconds()};
        pthread_mutex_unlock(&p->lock);
    }
}

void msc_patience_renew(struct msc_patience *p, struct msc_patience_wait *wait) {
    set_wait(p, wait, wait ? wait->socket : -1);
}

void msc_patience_pause(struct msc_patience *p, struct msc_patience_wait *wait) {
    if (wait) {
        pthread_mutex_lock(&p->lock);
        wait->paused_s = msc_clock_seconds();
        pthread_mutex_unlock(&p->lock);
    }
}

void msc_patience_go_on(struct msc_patience *p, struct msc_patience_wait *wait) {
    if (wait) {
        pthread_mutex_lock(&p->lock);
        wait->since_s += wait->paused_s > 0.0 ? msc_clock_seconds() - wait->paused_s : 0.0;
        wait->paused_s = 0.0;
        pthread_mutex_unlock(&p->lock);
    }
}

void msc_patience_close(struct msc_patience *p, struct msc_patience_wait *wait) {
    set_wait(p, wait, -1);
}

// Only shuts the socket down. The server then finds the connection dead and closes the socket.
void msc_patience_end_late(struct msc_patience *p, double limit_s) {
    pthread_mutex_lock(&p->lock);
    double now_s = msc_clock_seconds();
    for (size_t i = 0; i < p->n; i++) {
        const struct msc_patience_wait *wait = &p->waits[i];
        if (wait->socket >= 0 && wait->paused_s == 0.0 && now_s - wait->since_s >= limit_s) {
            shutdown(wait->socket, SHUT_RDWR);
        }
    }
    pthread_mutex_unlock(&p->lock);
}
