#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NS_PER_SECOND 1000000000u

static uint64_t read_ns(clockid_t clock) {
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t msc_clock_ns(void) {
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t msc_clock_cpu_ns(void) {
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
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
    // The format has four digits for the year, so years end with 9999. The negated test also
    // rejects NaN.
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

// Days since 1970-01-01. In this calculation years begin in March, so that the leap day is the last
// day of a year.
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
    int64_t y = month > 2 ? year : year - 1;
    int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return 365 * y + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

bool msc_clock_parse(double *wall_seconds, const char *text) {
    int year, month, day, hour, minute, second, length = 0;
    char again[MSC_CLOCK_TEXT_BYTES];
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2dZ%n", &year, &month, &day, &hour, &minute, &second,
               &length) != 6 ||
        length == 0 || text[length] != '\0') {
        return false;
    }
    int64_t days = days_since_1970(year, month, day);
    double seconds = (double)(days * 86400 + hour * 3600 + minute * 60 + second);
    if (strcmp(msc_clock_format(again, seconds), text) != 0) { // rejects dates such as February 30
        return false;
    }
    *wall_seconds = seconds;
    return true;
}
