#include "search/pace.h"

#include <math.h>

// Earlier notes lose half of their weight after this many further units.
#define HALF_LIFE 16.0
// At the beginning the half-life is shorter, because memory is still being touched. It is at most
// this fraction of all units seen.
#define HALF_LIFE_PART 0.25
// An evaluation has at most GROWTH times as many trials as were seen before. A single fast
// measurement must not decide on a whole round.
#define GROWTH 4
// Additional trials count as running in parallel with the others if they increase the time by less
// than FREE_PART times an increase in proportion to their number.
#define FREE_PART 0.5
#define MOST ((size_t)1 << 20)

void msc_rate_note(struct msc_rate *rate, size_t n, double seconds) {
    if (n == 0) {
        return;
    }
    double half_life = fmin(HALF_LIFE, HALF_LIFE_PART * (double)(rate->n_seen + n));
    double kept = rate->n_notes < 2 ? 0.0 : exp2(-(double)n / half_life);
    rate->n = rate->n * kept + (double)n;
    rate->seconds = rate->seconds * kept + seconds;
    rate->n_seen += n;
    rate->n_notes++;
}

double msc_rate_seconds(const struct msc_rate *rate) {
    return rate->n_notes > 0 ? rate->seconds / rate->n : NAN;
}

void msc_pace_note(struct msc_pace *pace, size_t n, double seconds) {
    if (n == 0) {
        return;
    }
    bool is_first = pace->trials.n_notes == 0;
    msc_rate_note(&pace->trials, n, seconds);
    if (is_first) {
        return;
    }
    if (pace->n_last > 0 && n > pace->n_last) {
        double more = (double)(n - pace->n_last) / (double)pace->n_last;
        bool is_free = seconds - pace->last_s < FREE_PART * more * pace->last_s;
        pace->is_full = !is_free;
        pace->n_beside = is_free ? n : pace->n_beside;
    }
    pace->n_last = n;
    pace->last_s = seconds;
}

size_t msc_pace_fit(const struct msc_pace *pace, double seconds) {
    double trial_s = msc_rate_seconds(&pace->trials);
    if (isnan(trial_s) || seconds < trial_s) {
        return 1;
    }
    return seconds < trial_s * (double)MOST ? (size_t)(seconds / trial_s) : MOST;
}

size_t msc_pace_part(const struct msc_pace *pace, double seconds) {
    size_t n = msc_pace_fit(pace, seconds);
    size_t n_beside = pace->n_last > 0 && !pace->is_full ? 2 * pace->n_beside : pace->n_beside;
    size_t n_most = pace->trials.n_seen > 0 ? GROWTH * pace->trials.n_seen : 1;
    n = n > n_beside ? n : n_beside;
    return n < n_most ? n : n_most;
}
