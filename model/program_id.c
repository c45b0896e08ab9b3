#include "model/program_id.h"

#include "base/hash.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *msc_program_name(void) {
    return "mscgym " MSC_VERSION;
}

static enum msc_status fail_program(void) {
    return MSC_FAIL(MSC_E_IO, "/proc/self/exe: cannot be read");
}

enum msc_status msc_program_build(const char **out, struct msc_arena *arena) {
    struct stat info;
    char text[MSC_HASH_TEXT_BYTES];
    int descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &info) != 0) {
        return fail_program();
    }
    size_t n_bytes = (size_t)info.st_size;
    void *bytes = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (bytes == MAP_FAILED) {
        return fail_program();
    }
    msc_hash_format(text, msc_hash_bytes(bytes, n_bytes));
    munmap(bytes, n_bytes);
    *out = msc_arena_strdup(arena, text);
    return MSC_ALLOCATED(*out);
}
