#include "cli/color.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// There is one for a process, as there is one command line.
static enum msc_color asked;

// What is started besides, such as workers on this machine, shall have none either.
void msc_color_set(enum msc_color color) {
    asked = color;
    if (color == MSC_COLOR_NEVER) {
        setenv("NO_COLOR", "1", true);
    }
}

// https://no-color.org: whatever NO_COLOR says, unless it is empty.
bool msc_color_is_on(int descriptor) {
    const char *refusal = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (asked != MSC_COLOR_AUTO) {
        return asked == MSC_COLOR_ALWAYS;
    }
    return isatty(descriptor) == 1 && !(refusal && refusal[0]) && terminal && terminal[0] &&
           strcmp(terminal, "dumb") != 0;
}
