// What trials rest on: scales and reference outputs, which are computed once and afterwards read from
// RECORD.params.
#include "env/quantize_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "data/safetensors.h"

static struct msc_hash hash_list(const struct msc_array_list *list) {
    struct msc_hash h = msc_hash_bytes("params", 6);
    for (size_t i = 0; i < list->n; i++) {
        h = msc_hash_add_text(h, list->names[i]);
        h = msc_hash_combine(h, msc_array_hash(list->arrays[i]));
    }
    return h;
}

struct progress {
    const struct msc_log *log;
    const struct msc_cancel *cancel;
    size_t tenths;
};

static void tell_calibrated(void *payload, size_t done, size_t all) {
    struct progress *p = payload;
    size_t tenths = done * 10 / all;
    msc_cancel_beat(p->cancel); // ranges of great weights take long
    if (tenths > p->tenths) {
        p->tenths = tenths;
        msc_log(p->log, MSC_LOG_INFO, "calibrating: %zu of %zu sites", done, all);
    }
}

static enum msc_status list_parameters(const struct msc_quantize *z, struct msc_array_list *list) {
    MSC_TRY(msc_quantizer_save(z->quantizer, list));
    return msc_distill_save_reference(z->distill, list);
}

static enum msc_status compute_parameters(struct msc_env *env, struct msc_quantize *z,
                                          struct msc_array_list *list) {
    const struct msc_env_host *host = msc_env_host(env);
    struct progress progress = {.log = host->log, .cancel = host->cancel};
    if (host->parameters_required) {
        return MSC_FAIL(MSC_E_STATE,
                        "%s is missing: it holds the scales that this record was made with, which "
                        "cannot be computed again under other numerics",
                        host->parameters_path);
    }
    MSC_TRY(msc_distill_compute_reference(z->distill));
    MSC_TRY(msc_quantizer_calibrate(z->quantizer, msc_distill_evaluator(z->distill),
                                    tell_calibrated, &progress));
    MSC_TRY(list_parameters(z, list));
    return host->parameters_path ? msc_safetensors_save(host->parameters_path, list, NULL, 0)
                                 : MSC_OK;
}

static enum msc_status load_parameters(struct msc_quantize *z, const char *path,
                                       struct msc_array_list *list) {
    enum msc_status status = msc_safetensors_load(list, path);
    if (status == MSC_OK) {
        status = msc_quantizer_load(z->quantizer, list);
        if (status == MSC_OK) {
            status = msc_distill_load_reference(z->distill, list);
        }
        if (status != MSC_OK) {
            status = msc_status_prefix(status, "%s does not belong to this configuration", path);
        }
    }
    return status;
}

enum msc_status msc_quantize__get_parameters(struct msc_env *env, struct msc_quantize *z) {
    const struct msc_env_host *host = msc_env_host(env);
    struct msc_array_list found = {0};
    struct msc_array_list own = {0};
    enum msc_status status;
    if (host->parameters_path && msc_file_exists(host->parameters_path)) {
        MSC_TRY_OUT(load_parameters(z, host->parameters_path, &found));
        // Hashed in our order, whatever else is in the file.
        MSC_TRY_OUT(list_parameters(z, &own));
    } else {
        MSC_TRY_OUT(compute_parameters(env, z, &own));
    }
    z->parameters = hash_list(&own);
    status = MSC_OK;
out:
    msc_array_list_finish(&found);
    msc_array_list_finish(&own);
    return status;
}
