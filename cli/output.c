#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

// The kept standard output of the process; NULL before msc_output_keep.
static FILE *kept;

static enum msc_status fail_output(void) {
    return MSC_FAIL(MSC_E_IO, "standard output: %s", strerror(errno));
}

// Redirects standard output to standard error, or to /dev/null if that is closed.
static bool replace_output(void) {
    if (dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) {
        return true;
    }
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool is_good = nothing >= 0 && dup2(nothing, STDOUT_FILENO) >= 0;
    if (nothing >= 0) {
        close(nothing);
    }
    return is_good;
}

enum msc_status msc_output_keep(void) {
    if (kept) {
        return MSC_OK;
    }
    fflush(stdout);
    int descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (descriptor < 0) {
        return errno == EBADF ? MSC_OK : fail_output(); // it is closed: writing will fail
    }
    kept = fdopen(descriptor, "w");
    if (!kept) {
        enum msc_status status = fail_output();
        close(descriptor);
        return status;
    }
    return replace_output() ? MSC_OK : fail_output();
}

void msc_output_give_back(void) {
    if (kept) {
        fflush(stdout);
        dup2(fileno(kept), STDOUT_FILENO);
        fclose(kept);
        kept = NULL;
    }
}

FILE *msc_output_file(void) {
    return kept ? kept : stdout;
}

int msc_output_descriptor(void) {
    return kept ? fileno(kept) : STDOUT_FILENO;
}
