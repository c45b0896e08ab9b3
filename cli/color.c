#include "cli/color.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// https://no-color.org: NO_COLOR turns colours off if it is set and not empty.
bool msc_color_is_on(enum msc_color color, int descriptor) {
    const char *refusal = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (color != MSC_COLOR_AUTO) {
        return color == MSC_COLOR_ALWAYS;
    }
    return isatty(descriptor) == 1 && !(refusal && refusal[0]) && terminal && terminal[0] &&
           strcmp(terminal, "dumb") != 0;
}
