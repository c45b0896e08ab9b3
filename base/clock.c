#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#define NS_PER_SECOND 1000000000u

uint64_t msc_clock_ns(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

double msc_clock_seconds(void) {
    return (double)msc_clock_ns() / NS_PER_SECOND;
}

double msc_clock_wall_seconds(void) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / NS_PER_SECOND;
}

const char *msc_clock_format(char text[MSC_CLOCK_TEXT_BYTES], double wall_seconds) {
    struct tm fields;
    // Beyond the year 9999 the form with four digits ends; a negated test refuses nan as well.
    if (!(fabs(wall_seconds) < 253402300800.0)) {
        snprintf(text, MSC_CLOCK_TEXT_BYTES, "unknown time");
        return text;
    }
    time_t whole = (time_t)floor(wall_seconds);
    if (!gmtime_r(&whole, &fields) ||
        strftime(text, MSC_CLOCK_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &fields) == 0) {
        snprintf(text, MSC_CLOCK_TEXT_BYTES, "unknown time");
    }
    return text;
}
