// Time: monotonic clocks for measuring, wall time for labels.
#ifndef MSC_BASE_CLOCK_H
#define MSC_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

uint64_t msc_clock_ns(void);     // monotonic time in nanoseconds
uint64_t msc_clock_cpu_ns(void); // processor time of all threads of this process, in nanoseconds
double msc_clock_seconds(void);  // monotonic time in seconds
double msc_clock_wall_seconds(void); // seconds since 1970, UTC
#define MSC_CLOCK_TEXT_BYTES 32
// Formats a time as "2026-11-21T04:05:06Z"; returns `text`.
const char *msc_clock_format(char text[MSC_CLOCK_TEXT_BYTES], double wall_seconds);
// Reads a time in the format of msc_clock_format. False if `text` has any other form.
bool msc_clock_parse(double *wall_seconds, const char *text);

#endif
