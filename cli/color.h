// Colours: on a terminal that has them, unless the environment says NO_COLOR, or as --color says.
#ifndef MSC_CLI_COLOR_H
#define MSC_CLI_COLOR_H

#include <stdbool.h>

// In the order of MSC_COLOR_NAMES.
enum msc_color {
    MSC_COLOR_AUTO,
    MSC_COLOR_ALWAYS,
    MSC_COLOR_NEVER,
};

#define MSC_COLOR_NAMES "auto|always|never"

// What --color says, for the whole process.
void msc_color_set(enum msc_color color);
// Shall what is written to this descriptor have colours?
bool msc_color_is_on(int descriptor);

#endif
