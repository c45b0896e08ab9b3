// Decides which output has colours: terminals that can show them, unless the environment variable
// NO_COLOR is set. --color overrides both rules.
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

// True if output to this file descriptor has colours.
bool msc_color_is_on(enum msc_color color, int descriptor);

#endif
