#include "report/layers.h"

#include "model/layers.h"
#include "pipeline/subject.h"

enum msc_status msc_report_layers(struct cJSON **out, const char *record,
                                  const struct msc_layers_options *options) {
    struct msc_processor_options o = MSC_PROCESSOR_OPTIONS_INIT;
    struct msc_model_options of_model = MSC_MODEL_OPTIONS_INIT;
    struct msc_record_plan plan = {.record = NULL};
    struct msc_model *model = NULL;
    enum msc_status status = MSC_OK;
    o.allow_plugins = options->allow_plugins;
    o.log = options->log;
    o.has_log_level = true;
    o.log_level = MSC_LOG_WARNING;
    of_model.device = "cpu";
    MSC_TRY_OUT(msc_record_plan_open(&plan, record, -1, &o));
    MSC_TRY_OUT(msc_record_plan_make(&plan));
    const struct msc_config *config = msc_processor_config(plan.processor);
    struct msc_config_dataset dataset = msc_subject_dataset(config);
    // The search's own graph, to which its passes have been applied.
    MSC_TRY_OUT(msc_model_open_graph(&model, msc_processor_graph(plan.processor), config->model,
                                     &of_model));
    MSC_TRY_OUT(msc_model_load_dataset(model, &dataset));
    status = msc_model_layers(out, model, plan.strategy);
out:
    msc_model_close(model);
    msc_record_plan_close(&plan);
    return status;
}
