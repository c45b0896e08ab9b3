#include "cluster/cluster.h"

#include "base/alloc.h"
#include "base/str.h"

#include <string.h>

#define MAX_WORKERS 4096

static enum msc_status fail_cluster(const char *text) {
    return MSC_FAIL(MSC_E_INVALID,
                    "--cluster is \"%s\", expected local:N, ray:HOST:PORT[:N], ray:auto[:N] or "
                    "slurm[:PARTITION][:N], with N from 1 to %d workers",
                    text, MAX_WORKERS);
}

static bool read_count(int64_t *n, const char *text) {
    return msc_parse_i64(n, text) && *n >= 1 && *n <= MAX_WORKERS;
}

// Reads the text after "ray:": HOST:PORT or auto, optionally with :N.
static bool read_ray(struct msc_cluster *c, char *text) {
    char *rest = strchr(text, ':');
    bool is_auto = strncmp(text, "auto", 4) == 0 && (text[4] == '\0' || text[4] == ':');
    if (!is_auto) {
        bool has_port = rest && rest > text && rest[1] >= '0' && rest[1] <= '9';
        rest = has_port ? strchr(rest + 1, ':') : NULL;
        if (!has_port) {
            return false;
        }
    }
    c->address = text;
    if (!rest) {
        return true;
    }
    *rest = '\0';
    return read_count(&c->n, rest + 1);
}

// Reads the text after "slurm:": nothing, N, PARTITION, or PARTITION:N.
static bool read_slurm(struct msc_cluster *c, char *text) {
    char *last = strchr(text, ':');
    bool is_partition = text[0] < '0' || text[0] > '9' || last;
    if (last) {
        *last = '\0';
    }
    c->partition = is_partition ? text : NULL;
    return text[0] != '\0' &&
           (is_partition && !last ? true : read_count(&c->n, last ? last + 1 : text));
}

enum msc_status msc_cluster_read(struct msc_cluster *c, struct msc_arena *arena, const char *text) {
    static const char local[] = "local:", ray[] = "ray:", slurm[] = "slurm:";
    char *copy = msc_arena_strdup(arena, text);
    bool is_good = false;
    *c = (struct msc_cluster){0};
    MSC_TRY(MSC_ALLOCATED(copy));
    if (strncmp(copy, local, sizeof local - 1) == 0) {
        is_good = read_count(&c->n, copy + sizeof local - 1);
    } else if (strncmp(copy, ray, sizeof ray - 1) == 0) {
        c->kind = MSC_CLUSTER_RAY;
        is_good = read_ray(c, copy + sizeof ray - 1);
    } else if (strcmp(copy, "slurm") == 0) {
        c->kind = MSC_CLUSTER_SLURM;
        is_good = true;
    } else if (strncmp(copy, slurm, sizeof slurm - 1) == 0) {
        c->kind = MSC_CLUSTER_SLURM;
        is_good = read_slurm(c, copy + sizeof slurm - 1);
    }
    return is_good ? MSC_OK : fail_cluster(text);
}
