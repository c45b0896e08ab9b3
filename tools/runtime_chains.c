#include "tools/runtime_chains.h"

#include "base/alloc.h"
#include "tools/runtime_internal.h"

#include <math.h>
#include <stdio.h>

static enum msc_status add_names(cJSON *object, const char *key, const char *const names[],
                                 size_t n) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (size_t i = 0; i < n; i++) {
        MSC_TRY(msc_json_push(list, cJSON_CreateString(names[i])));
    }
    return MSC_OK;
}

static enum msc_status add_pieces(cJSON *object, const char *key,
                                  const struct msc_runtime_piece pieces[], size_t n) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (size_t i = 0; i < n; i++) {
        cJSON *piece = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, piece));
        MSC_TRY(msc_json_add_text(piece, "model", pieces[i].model));
        MSC_TRY(msc_json_add_text(piece, "backend", pieces[i].backend));
        MSC_TRY(add_names(piece, "outputs", pieces[i].outputs, pieces[i].n_outputs));
        MSC_TRY(pieces[i].may_fail ? msc_json_add_bool(piece, "may_fail", true) : MSC_OK);
        MSC_TRY(pieces[i].copy ? msc_json_add_number(piece, "copy", pieces[i].copy) : MSC_OK);
    }
    return MSC_OK;
}

static enum msc_status fill_request(cJSON *request, const struct msc_runtime_chains *job) {
    cJSON *chains = cJSON_CreateArray();
    MSC_TRY(msc_json_add(request, "chains", chains));
    for (size_t i = 0; i < job->n_chains; i++) {
        cJSON *chain = cJSON_CreateObject();
        MSC_TRY(msc_json_push(chains, chain));
        MSC_TRY(add_pieces(chain, "pieces", job->chains[i].pieces, job->chains[i].n_pieces));
        MSC_TRY(job->chains[i].parts
                    ? msc_json_add_number(chain, "parts", job->chains[i].most_error)
                    : MSC_OK);
    }
    MSC_TRY(add_pieces(request, "values", job->values, job->n_values));
    MSC_TRY(add_names(request, "others", job->others, job->n_others));
    MSC_TRY(msc_json_add_number(request, "threads", job->n_threads));
    MSC_TRY(msc_json_add_number(request, "batch", (double)job->batch));
    MSC_TRY(msc_json_add_number(request, "rounds", (double)job->n_rounds));
    return job->inputs
               ? msc_json_add_text(request, "inputs", job->inputs)
               : msc_runtime__add_numbers(request, "lengths", job->bindings, job->n_bindings);
}

static enum msc_status read_part(struct msc_runtime_part *part, const cJSON *item,
                                 const char *where, size_t n_rounds, struct msc_arena *arena) {
    const char *missing = msc_json_text_of(item, "missing");
    const cJSON *us, *value;
    size_t i = 0;
    part->error = msc_json_number_of(item, "error");
    part->error = part->error >= 0.0 ? part->error : 0.0;
    part->bytes = msc_json_number_of(item, "bytes");
    part->bytes = part->bytes >= 0.0 ? part->bytes : 0.0;
    part->missing = missing ? msc_arena_strdup(arena, missing) : NULL;
    if (missing) {
        return MSC_ALLOCATED(part->missing);
    }
    MSC_TRY(msc_json_get_array(&us, item, "us", where));
    if ((size_t)cJSON_GetArraySize(us) != n_rounds) {
        return MSC_FAIL(MSC_E_FORMAT, "%s: a part has %d rounds, expected %zu", where,
                        cJSON_GetArraySize(us), n_rounds);
    }
    cJSON_ArrayForEach(value, us) {
        if (!cJSON_IsNumber(value) || !(value->valuedouble >= 0.0) ||
            !isfinite(value->valuedouble)) {
            return MSC_FAIL(MSC_E_FORMAT, "%s: round %zu of a part is not a duration", where, i);
        }
        part->us[i++] = value->valuedouble;
    }
    return MSC_OK;
}

static enum msc_status read_parts(struct msc_runtime_chain *chain, size_t i, const cJSON *item,
                                  size_t n_rounds, struct msc_arena *arena) {
    const cJSON *list, *part;
    char where[64];
    size_t k = 0;
    snprintf(where, sizeof where, "answer: chain %zu", i);
    MSC_TRY(msc_json_get_array(&list, item, "parts", where));
    if ((size_t)cJSON_GetArraySize(list) != chain->n_pieces) {
        return MSC_FAIL(MSC_E_FORMAT, "%s has %d parts, expected %zu", where,
                        cJSON_GetArraySize(list), chain->n_pieces);
    }
    cJSON_ArrayForEach(part, list) {
        MSC_TRY(read_part(&chain->parts[k++], part, where, n_rounds, arena));
    }
    return MSC_OK;
}

static enum msc_status read_chain(struct msc_runtime_chain *chain, struct msc_latency *l, size_t i,
                                  const cJSON *item, struct msc_arena *arena) {
    const char *missing = msc_json_text_of(item, "missing");
    chain->missing = NULL;
    if (missing) {
        chain->missing = msc_arena_strdup(arena, missing);
        for (size_t k = 0; chain->parts && k < chain->n_pieces; k++) {
            chain->parts[k].missing = chain->missing;
        }
        return MSC_ALLOCATED(chain->missing);
    }
    chain->error = msc_json_number_of(item, "error");
    if (!(chain->error >= 0.0)) {
        return MSC_FAIL(MSC_E_FORMAT, "answer: chain %zu has no error", i);
    }
    MSC_TRY(chain->parts ? read_parts(chain, i, item, l->n_rounds, arena) : MSC_OK);
    return msc_runtime__read_rounds(l, i, item);
}

static enum msc_status read_chains(struct msc_latency *l, const struct msc_runtime_chains *job,
                                   const cJSON *answer) {
    const cJSON *list = NULL, *item;
    size_t i = 0;
    MSC_TRY(msc_json_get_array(&list, answer, "chains", "answer"));
    if ((size_t)cJSON_GetArraySize(list) != job->n_chains) {
        return MSC_FAIL(MSC_E_FORMAT, "answer: %d chains, expected %zu", cJSON_GetArraySize(list),
                        job->n_chains);
    }
    cJSON_ArrayForEach(item, list) {
        MSC_TRY(read_chain(&job->chains[i], l, i, item, job->arena));
        i++;
    }
    return MSC_OK;
}

enum msc_status msc_runtime_chains(struct msc_latency *latency, struct msc_runtime *r,
                                   const struct msc_runtime_chains *job) {
    cJSON *request = cJSON_CreateObject(), *answer = NULL;
    enum msc_status status = fill_request(request, job);
    if (status != MSC_OK) {
        cJSON_Delete(request);
        return status;
    }
    MSC_TRY(msc_runtime__exchange(r, request, "chains", &answer));
    status = msc_latency_init(latency, job->n_chains, (size_t)job->n_rounds);
    status = status == MSC_OK ? read_chains(latency, job, answer) : status;
    cJSON_Delete(answer);
    if (status != MSC_OK) {
        msc_latency_finish(latency);
        return msc_runtime__fail(r, status, "chains");
    }
    return MSC_OK;
}
