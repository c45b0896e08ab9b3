#include "model/export.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "env/env.h"
#include "graph/onnx/onnx.h"
#include "graph/tflite/tflite.h"
#include "model/program_id.h"
#include "records/record_query.h"
#include "tools/bias_edits.h"
#include "tools/strategy.h"

#include <inttypes.h>
#include <stdio.h>

enum msc_status msc_export_strategy(struct msc_strategy **out, struct msc_env *env,
                                    const uint32_t choices[]) {
    cJSON *json = NULL;
    MSC_TRY(msc_env_edits(env, choices, &json));
    enum msc_status status = msc_strategy_from_json(out, json, "edits");
    cJSON_Delete(json);
    return status;
}

enum msc_status msc_export_model(const struct msc_graph *graph, const struct msc_strategy *strategy,
                                 const char *path, const struct msc_record *record, int64_t trial) {
    struct msc_sites sites = {0};
    struct msc_graph *pruned = NULL;
    struct msc_bias_edits *bias_edits = NULL;
    const struct msc_edit **edits = NULL;
    char strategy_text[MSC_HASH_TEXT_BYTES];
    char record_text[MSC_HASH_TEXT_BYTES];
    char trial_text[24];
    const char *metadata[4][2] = {{"mscgym.program", msc_program_name()}};
    size_t n = 1;
    enum msc_status status = MSC_OK;
    struct msc_site_scheme scheme = {0};
    if (strategy) {
        scheme = msc_strategy_scheme(strategy);
    }
    if (strategy && msc_strategy_prunes(strategy)) {
        MSC_TRY(msc_strategy_prune(&pruned, strategy, graph));
        graph = pruned;
    }
    MSC_TRY_OUT(msc_sites_find(&sites, graph, &scheme));
    edits = msc_alloc_zero((size_t)sites.n_slots + 1, sizeof *edits);
    MSC_TRY_OUT(MSC_ALLOCATED(edits));
    if (strategy) {
        MSC_TRY_OUT(pruned ? msc_strategy_apply_to_any(strategy, graph, &sites, edits)
                           : msc_strategy_apply(strategy, graph, &sites, edits));
        MSC_TRY_OUT(msc_bias_edits_create(&bias_edits, graph, &sites));
        MSC_TRY_OUT(msc_bias_edits_fill(bias_edits, edits));
        metadata[n][0] = "mscgym.strategy";
        metadata[n++][1] = msc_hash_format(strategy_text, msc_strategy_hash(strategy));
    }
    if (record) {
        struct msc_hash identity;
        MSC_TRY_OUT(msc_record_identity(&identity, record));
        metadata[n][0] = "mscgym.record";
        metadata[n++][1] = msc_hash_format(record_text, identity);
    }
    if (trial >= 0) {
        snprintf(trial_text, sizeof trial_text, "%" PRId64, trial);
        metadata[n][0] = "mscgym.trial";
        metadata[n++][1] = trial_text;
    }
    const struct msc_onnx_export_options options = {
        .sites = &sites,
        .slot_edits = edits,
        .metadata = (const char *const(*)[2])metadata,
        .n_metadata = n,
    };
    status = msc_export_is_tflite(path) ? msc_tflite_save(graph, path, &options)
                                        : msc_onnx_save(graph, path, &options);
out:
    msc_bias_edits_destroy(bias_edits);
    msc_free(edits);
    msc_sites_finish(&sites);
    msc_graph_destroy(pruned);
    return status;
}

bool msc_export_is_tflite(const char *path) {
    return msc_path_ends_in(path, MSC_TFLITE_SUFFIX);
}

enum msc_status msc_export_check(const struct msc_graph *graph, const char *path,
                                 const char *target) {
    if (!msc_export_is_tflite(path)) {
        return MSC_OK;
    }
    if (target && msc_target_find(target) != msc_target_find("tflite")) {
        return MSC_FAIL(MSC_E_INVALID,
                        "%s: a .tflite file needs the target tflite, but the target is %s", path,
                        target);
    }
    return msc_tflite_check(graph, path);
}
