// Reads and writes the rules of a race as JSON, and sets the default rungs.
#include "base/json.h"
#include "records/race.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_KEEP 0.5
#define DEFAULT_MARGIN 1.5
#define LEAST_BATCHES 4
#define MOST_MARGIN 100.0

static enum msc_status read_keep(struct msc_race *out, const cJSON *value, const char *where) {
    out->keep = DEFAULT_KEEP;
    if (!value) {
        return MSC_OK;
    }
    out->keep = cJSON_IsNumber(value) ? value->valuedouble : 0.0;
    return out->keep > 0.0 && out->keep < 1.0
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: keep must be more than 0 and less than 1; it is the share of trials "
                          "that continue after a rung",
                          where);
}

static enum msc_status read_margin(struct msc_race *out, const cJSON *value, double absent,
                                   const char *where) {
    out->margin = cJSON_IsFalse(value) ? 0.0 : absent;
    if (!value || cJSON_IsFalse(value)) {
        return MSC_OK;
    }
    out->margin = cJSON_IsNumber(value) ? value->valuedouble : 0.0;
    return out->margin > 0.0 && out->margin <= MOST_MARGIN
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID,
                          "%s: margin must be a number of standard errors above 0 and at most %g, "
                          "or false",
                          where, MOST_MARGIN);
}

// The number of batches whose mean is as precise as the mean of LEAST_BATCHES batches of an
// infinite set. It follows from the correction for finite populations (Cochran 1977, chapter 4). It
// is close to LEAST_BATCHES if there are many batches, and close to `n_batches` if there are few.
static size_t telling_batches(size_t n_batches) {
    size_t sum = LEAST_BATCHES + n_batches;
    size_t n = (LEAST_BATCHES * n_batches + sum - 1) / sum; // rounded up
    return n < n_batches / 2 ? n : n_batches / 2;
}

// Each rung has twice as many batches as the previous one, up to half of all batches. With a
// margin, there are as many rungs as allowed, so the first rung is as small as possible. Without a
// margin the first rung must be precise by itself.
static void set_default_rungs(struct msc_race *out, size_t n_batches) {
    size_t first = telling_batches(n_batches);
    for (size_t most = 1; out->margin > 0.0 && most <= MSC_RACE_MAX_RUNGS; most++) {
        first = (n_batches >> most) > 0 ? n_batches >> most : first;
    }
    for (size_t rung = first;
         rung > 0 && 2 * rung <= n_batches && out->n_rungs < MSC_RACE_MAX_RUNGS; rung *= 2) {
        out->rungs[out->n_rungs++] = (uint32_t)rung;
    }
}

static enum msc_status fail_rungs(size_t n_batches, const char *where) {
    char most[64] = "";
    if (n_batches > 0) {
        snprintf(most, sizeof most, ", fewer than all %zu batches", n_batches);
    }
    return MSC_FAIL(MSC_E_INVALID,
                    "%s: rungs must list at most %d numbers of batches in increasing order%s",
                    where, MSC_RACE_MAX_RUNGS, most);
}

static enum msc_status read_rungs(struct msc_race *out, const cJSON *list, size_t n_batches,
                                  const char *where) {
    double most = n_batches > 0 ? (double)n_batches : UINT32_MAX;
    const cJSON *item = NULL;
    double last = 0.0;
    cJSON_ArrayForEach(item, list) {
        double rung = cJSON_IsNumber(item) ? item->valuedouble : 0.0;
        if (out->n_rungs == MSC_RACE_MAX_RUNGS || rung != floor(rung) || !(rung > last) ||
            !(rung < most)) {
            return fail_rungs(n_batches, where);
        }
        out->rungs[out->n_rungs++] = (uint32_t)rung;
        last = rung;
    }
    return out->n_rungs > 0 ? MSC_OK : fail_rungs(n_batches, where);
}

static bool is_key(const char *key, bool is_header) {
    return strcmp(key, "rungs") == 0 || strcmp(key, "keep") == 0 || strcmp(key, "margin") == 0 ||
           (is_header && (strcmp(key, "batches") == 0 || strcmp(key, "version") == 0));
}

static enum msc_status check_members(const cJSON *value, bool is_header, const char *where) {
    const cJSON *member = NULL;
    if (!cJSON_IsObject(value) && !cJSON_IsTrue(value)) {
        return MSC_FAIL(
            MSC_E_INVALID,
            "%s: expected true, or an object such as {\"rungs\": [1, 4], \"keep\": 0.5}", where);
    }
    cJSON_ArrayForEach(member, value) {
        if (!is_key(member->string, is_header)) {
            return MSC_FAIL(MSC_E_INVALID,
                            "%s: unknown key \"%s\", the known keys are rungs, keep and margin",
                            where, member->string);
        }
    }
    return MSC_OK;
}

void msc_race_default(struct msc_race *out, size_t n_batches) {
    *out =
        (struct msc_race){.n_batches = n_batches, .keep = DEFAULT_KEEP, .margin = DEFAULT_MARGIN};
    set_default_rungs(out, n_batches);
}

enum msc_status msc_race_read(struct msc_race *out, const struct cJSON *value, size_t n_batches,
                              const char *where) {
    const cJSON *rungs = msc_json_get(value, "rungs");
    *out = (struct msc_race){.n_batches = n_batches};
    MSC_TRY(check_members(value, false, where));
    MSC_TRY(read_keep(out, msc_json_get(value, "keep"), where));
    MSC_TRY(read_margin(out, msc_json_get(value, "margin"), DEFAULT_MARGIN, where));
    if (n_batches == 1) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: a race needs several batches, but the samples are one batch; "
                        "lower dataset.batch",
                        where);
    }
    if (!rungs) { // no default rungs if the number of batches is unknown
        set_default_rungs(out, n_batches);
        return MSC_OK;
    }
    return read_rungs(out, rungs, n_batches, where);
}

static enum msc_status check_version(const cJSON *value, const char *where) {
    return cJSON_IsNumber(value) && value->valuedouble == MSC_RACE_VERSION
               ? MSC_OK
               : MSC_FAIL(MSC_E_INVALID, "%s: unsupported version of the race, expected %d", where,
                          MSC_RACE_VERSION);
}

enum msc_status msc_race_read_header(struct msc_race *out, const struct cJSON *value,
                                     const char *where) {
    const cJSON *batches = msc_json_get(value, "batches");
    double n = cJSON_IsNumber(batches) ? batches->valuedouble : 0.0;
    *out = (struct msc_race){.n_batches = n >= 2.0 && n <= UINT32_MAX ? (size_t)n : 0};
    MSC_TRY(check_members(value, true, where));
    MSC_TRY(check_version(msc_json_get(value, "version"), where));
    MSC_TRY(read_keep(out, msc_json_get(value, "keep"), where));
    MSC_TRY(read_margin(out, msc_json_get(value, "margin"), 0.0, where));
    if (out->margin > 0.0 && (out->n_batches == 0 || (double)out->n_batches != n)) {
        return MSC_FAIL(MSC_E_INVALID, "%s: \"margin\" needs \"batches\"", where);
    }
    return read_rungs(out, msc_json_get(value, "rungs"), out->n_batches, where);
}

struct cJSON *msc_race_write(const struct msc_race *race) {
    cJSON *object = cJSON_CreateObject();
    cJSON *rungs = cJSON_CreateArray();
    bool is_written = object && rungs && cJSON_AddItemToObject(object, "rungs", rungs);
    if (!is_written) {
        cJSON_Delete(rungs);
    }
    for (size_t i = 0; is_written && i < race->n_rungs; i++) {
        is_written = cJSON_AddItemToArray(rungs, cJSON_CreateNumber(race->rungs[i]));
    }
    is_written = is_written && cJSON_AddNumberToObject(object, "keep", race->keep);
    if (is_written && race->margin > 0.0) {
        is_written = cJSON_AddNumberToObject(object, "margin", race->margin) &&
                     cJSON_AddNumberToObject(object, "batches", (double)race->n_batches);
    }
    is_written = is_written && cJSON_AddNumberToObject(object, "version", MSC_RACE_VERSION);
    if (!is_written) {
        cJSON_Delete(object);
        return NULL;
    }
    return object;
}

size_t msc_race_halves_from(const struct msc_race *race) {
    return race->margin > 0.0 ? telling_batches(race->n_batches) : 0;
}
