#include "cli/plugins.h"

#include "base/json.h"
#include "base/shown.h"
#include "base/str.h"
#include "base/style.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_PLUGINS 64

// The i-th metric, or NULL after the last. Metrics of a plug-in beyond the limit of a space are
// ignored.
static const struct msc_metric *plugin_metric(const struct msc_cli_plugin *plugin, size_t i) {
    const struct msc_metric *metric = i < MSC_MAX_METRICS ? plugin->metric(i) : NULL;
    return metric && metric->name ? metric : NULL;
}

static enum msc_status add_metrics(cJSON *object, const struct msc_cli_plugin *plugin) {
    cJSON *list = cJSON_CreateArray();
    const struct msc_metric *metric;
    MSC_TRY(msc_json_add(object, "metrics", list));
    for (size_t i = 0; (metric = plugin_metric(plugin, i)); i++) {
        cJSON *row = cJSON_CreateObject();
        MSC_TRY(msc_json_push(list, row));
        MSC_TRY(msc_json_add_text(row, "name", metric->name));
        MSC_TRY(msc_json_add_text(row, "unit", metric->unit ? metric->unit : ""));
        MSC_TRY(msc_json_add_text(row, "help", metric->help ? metric->help : ""));
        MSC_TRY(msc_json_add_bool(row, "maximised", metric->is_maximised));
        MSC_TRY(msc_json_add_bool(row, "exact", metric->is_exact));
    }
    return MSC_OK;
}

static enum msc_status add_plugin(cJSON *list, const struct msc_cli_plugin *plugin) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "name", plugin->name));
    MSC_TRY(msc_json_add_text(object, "summary", plugin->summary));
    MSC_TRY(msc_json_add_number(object, "version", plugin->version));
    cJSON *params = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "params", params));
    MSC_TRY(msc_param_describe(plugin->params, params));
    return plugin->metric ? add_metrics(object, plugin) : MSC_OK;
}

static enum msc_status print_plugins_json(const struct msc_cli_plugin plugins[], size_t n) {
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_OK;
    for (size_t i = 0; status == MSC_OK && i < n; i++) {
        status = add_plugin(list, &plugins[i]);
    }
    if (status == MSC_OK) {
        status = msc_cli_print_json(list);
    }
    cJSON_Delete(list);
    return status;
}

static void write_metrics(struct msc_str *out, const struct msc_cli_plugin *plugin) {
    const struct msc_metric *metric;
    int width = 0;
    for (size_t i = 0; (metric = plugin_metric(plugin, i)); i++) {
        int length = (int)strlen(metric->name);
        width = length > width ? length : width;
    }
    msc_str_append(
        out, "  metrics, for objectives and bounds; a bound on NAME_drop limits the drop from the "
             "float model:\n");
    for (size_t i = 0; (metric = plugin_metric(plugin, i)); i++) {
        msc_str_printf(out, "    %-*s  %s (%s%s)\n", width, metric->name,
                       metric->help ? metric->help : "", metric->is_exact ? "exact" : "measured",
                       metric->is_maximised ? ", higher is better" : "");
    }
}

static enum msc_status print_plugins(const struct msc_cli_call *call,
                                     const struct msc_cli_plugin plugins[], size_t n) {
    struct msc_str text = {.has_styles = call->console->has_output_colors};
    for (size_t i = 0; i < n; i++) {
        struct msc_str rest = {0}; // the plug-in's own text, without styles
        msc_str_append(&text, i > 0 ? "\n" : "");
        msc_style_begin(&text, MSC_STYLE_HEADING);
        msc_shown_append(&text, plugins[i].name);
        msc_style_end(&text);
        msc_str_printf(&rest, ": %s\n", plugins[i].summary);
        msc_param_help(plugins[i].params, &rest);
        if (plugins[i].metric) {
            write_metrics(&rest, &plugins[i]);
        }
        msc_shown_append_lines(&text, msc_str_text(&rest));
        text.failed |= rest.failed;
        msc_str_finish(&rest);
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status find_plugin(size_t *out, const struct msc_cli_plugin plugins[], size_t n,
                                   const char *name, const char *kind) {
    const char *names[MAX_PLUGINS] = {NULL};
    for (size_t i = 0; i < n; i++) {
        if (strcmp(plugins[i].name, name) == 0) {
            *out = i;
            return MSC_OK;
        }
        if (i < MAX_PLUGINS) {
            names[i] = plugins[i].name;
        }
    }
    const char *near = msc_suggest(name, names, n < MAX_PLUGINS ? n : MAX_PLUGINS);
    struct msc_str list = {0};
    for (size_t i = 0; i < n; i++) {
        msc_str_item(&list, plugins[i].name);
    }
    enum msc_status status =
        near ? MSC_FAIL(MSC_E_INVALID, "unknown %s \"%s\", did you mean \"%s\"?", kind, name, near)
             : MSC_FAIL(MSC_E_INVALID, "unknown %s \"%s\": expected one of %s", kind, name,
                        msc_str_text(&list));
    msc_str_finish(&list);
    return status;
}

int msc_cli_show_plugins(const struct msc_cli_call *call, const struct msc_cli_plugins *values,
                         const struct msc_cli_plugin plugins[], size_t n, const char *kind) {
    enum msc_status status = MSC_OK;
    size_t first = 0;
    if (values->name) {
        status = find_plugin(&first, plugins, n, values->name, kind);
        plugins += first;
        n = 1;
    }
    if (status == MSC_OK) {
        status =
            values->common.json ? print_plugins_json(plugins, n) : print_plugins(call, plugins, n);
    }
    return status == MSC_OK ? MSC_CLI_OK : msc_cli_fail(call, status);
}

int msc_cli_show_library(const struct msc_cli_call *call, const struct msc_cli_plugins *values,
                         int (*show)(const struct msc_cli_call *call,
                                     const struct msc_cli_plugins *values)) {
    int state = 0;
    pid_t ended;
    pid_t child = fork();
    if (child == 0) {
        int code = show(call, values);
        fflush(stdout);
        _exit(code);
    }
    do {
        ended = child < 0 ? -1 : waitpid(child, &state, 0);
    } while (child > 0 && ended < 0 && errno == EINTR);
    if (ended != child) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_IO, "cannot start a process to load %s: %s",
                                           values->name, strerror(errno)));
    }
    if (WIFSIGNALED(state)) {
        return msc_cli_fail(call, MSC_FAIL(MSC_E_FORMAT, "loading %s crashes: %s", values->name,
                                           strsignal(WTERMSIG(state))));
    }
    return WEXITSTATUS(state);
}
