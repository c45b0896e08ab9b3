#include "results/plan_layers.h"

#include "base/json.h"
#include "base/str.h"
#include "env/env.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *rest_of(const char *end) {
    return *end == ' ' ? end + 1 : end;
}

struct msc_plan_choice msc_plan_choice_of_bits(const char *label) {
    static const struct {
        const char *name;
        double bits;
    } types[] = {{"float", 32}, {"float16", 16}, {"bfloat16", 16}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(label, types[i].name) == 0) {
            return (struct msc_plan_choice){types[i].bits, NAN, label};
        }
    }
    char *end = NULL;
    long bits = strtol(label, &end, 10);
    bool is_number = end > label && (*end == ' ' || *end == '\0') && bits > 0 && bits <= 64;
    return is_number ? (struct msc_plan_choice){(double)bits, NAN, rest_of(end)}
                     : (struct msc_plan_choice){NAN, NAN, label};
}

struct msc_plan_choice msc_plan_choice_of_density(const char *label) {
    static const char sparse[] = "sparsity ";
    bool is_sparse = strncmp(label, sparse, sizeof sparse - 1) == 0;
    const char *number = is_sparse ? label + sizeof sparse - 1 : label;
    const char *space = strchr(number, ' ');
    size_t length = space ? (size_t)(space - number) : strlen(number);
    char text[32];
    double value = NAN;
    if (length < sizeof text) {
        memcpy(text, number, length);
        text[length] = '\0';
        char *colon = strchr(text, ':');
        double m = 0.0;
        if (colon) {
            *colon = '\0';
            bool is_pattern = msc_parse_double(&m, colon + 1) && msc_parse_double(&value, text);
            value = is_pattern && m > 0.0 ? value / m : NAN;
        } else if (msc_parse_double(&value, text)) {
            value = is_sparse ? 1.0 - value : value;
        } else {
            value = NAN;
        }
    }
    return (struct msc_plan_choice){NAN, value, isnan(value) ? label : rest_of(number + length)};
}

// ---- Tasks ------------------------------------------------------------------------------------

enum task_kind { TASK_BITS, TASK_CHANNELS, TASK_SPARSITY, TASK_OTHER };

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static enum task_kind kind_of_task(const struct msc_record *record, const char *task) {
    const cJSON *env = msc_json_get(msc_record_header(record), "env");
    const cJSON *type = msc_json_get(env, "type");
    const struct msc_env_def *def = msc_env_find(cJSON_IsString(type) ? type->valuestring : "");
    bool has_channels = def && (def->decides & MSC_ENV_DECIDES_CHANNELS);
    bool has_bits = def && (def->decides & MSC_ENV_DECIDES_BITS);
    if (has_channels && (ends_with(task, " sparsity") || ends_with(task, " sparsity channels"))) {
        return TASK_SPARSITY;
    }
    // If the space has both channels and bits, the names of tasks for channels end in " channels".
    if (has_channels && (!has_bits || ends_with(task, " channels"))) {
        return TASK_CHANNELS;
    }
    return has_bits ? TASK_BITS : TASK_OTHER;
}

int32_t msc_plan_find_tensor(int32_t *joint, const struct msc_graph *graph, const char *task) {
    static const char *const ends[] = {" channels", " sparsity"};
    struct msc_str name = {0};
    int32_t found = MSC_NO_ID;
    *joint = MSC_NO_ID;
    msc_str_append(&name, task);
    for (size_t i = 0; i < 2 && !name.failed; i++) {
        if (ends_with(name.data, ends[i])) {
            name.length -= strlen(ends[i]);
            name.data[name.length] = '\0';
        }
    }
    const char *text = msc_str_text(&name);
    if (!name.failed) {
        found = msc_graph_find_tensor(graph, text);
        *joint = found == MSC_NO_ID ? msc_graph_find_joint(graph, text) : MSC_NO_ID;
    }
    const char *use = found == MSC_NO_ID && *joint == MSC_NO_ID ? strstr(text, "-c-") : NULL;
    if (use) { // the task is about one use of an activation
        name.data[use - text] = '\0';
        found = msc_graph_find_tensor(graph, name.data);
    }
    msc_str_finish(&name);
    return found;
}

static const char *name_kind(enum task_kind kind, const struct msc_graph *g, int32_t tensor,
                             int32_t joint) {
    static const char *const names[] = {"task", "channels", "sparsity", "task"};
    bool is_weight = tensor != MSC_NO_ID && msc_graph_tensor(g, tensor)->producer == MSC_NO_ID;
    return kind != TASK_BITS     ? names[kind]
           : is_weight           ? "weight"
           : tensor != MSC_NO_ID ? "activation"
           : joint != MSC_NO_ID  ? "joint"
                                 : names[kind];
}

static enum msc_status add_number(cJSON *object, const char *key, double value) {
    return isnan(value) ? MSC_OK : msc_json_add_number(object, key, value);
}

static enum msc_status describe_task(cJSON *object, const struct msc_record *record,
                                     const struct msc_task *task, const char *label,
                                     const struct msc_graph *g) {
    int32_t joint = MSC_NO_ID;
    int32_t tensor = g ? msc_plan_find_tensor(&joint, g, task->name) : MSC_NO_ID;
    enum task_kind kind = kind_of_task(record, task->name);
    struct msc_plan_choice choice = {NAN, NAN, ""};
    MSC_TRY(msc_json_add_text(object, "task", task->name));
    MSC_TRY(msc_json_add_text(object, "kind", name_kind(kind, g, tensor, joint)));
    if (tensor != MSC_NO_ID) {
        const struct msc_tensor *t = msc_graph_tensor(g, tensor);
        MSC_TRY(msc_json_add_text(object, "tensor", t->name));
        if (t->producer == MSC_NO_ID) {
            MSC_TRY(add_number(object, "elements", (double)msc_tensor_n_elements(t)));
        }
    }
    MSC_TRY(msc_json_add_text(object, "choice", label));
    if (kind == TASK_BITS) {
        choice = msc_plan_choice_of_bits(label);
    } else if (kind != TASK_OTHER) {
        choice = msc_plan_choice_of_density(label);
    }
    MSC_TRY(add_number(object, "bits", choice.bits));
    MSC_TRY(add_number(object, "density", choice.density));
    return choice.method[0] ? msc_json_add_text(object, "method", choice.method) : MSC_OK;
}

enum msc_status msc_plan_layers(struct cJSON **out, const struct msc_record *record,
                                const uint32_t choices[], const struct msc_graph *graph) {
    const struct msc_space *space = msc_record_space(record);
    cJSON *list = cJSON_CreateArray();
    enum msc_status status = MSC_ALLOCATED(list);
    for (size_t t = 0; status == MSC_OK && t < space->n_tasks; t++) {
        const struct msc_task *task = &space->tasks[t];
        cJSON *object = cJSON_CreateObject();
        status = msc_json_push(list, object);
        if (status == MSC_OK) {
            status = describe_task(object, record, task, task->labels[choices[t]], graph);
        }
    }
    if (status != MSC_OK) {
        cJSON_Delete(list);
        return status;
    }
    *out = list;
    return MSC_OK;
}

// ---- In a line --------------------------------------------------------------------------------

struct label_count {
    const char *label;
    size_t n;
};

static size_t count_label(struct label_count counts[], size_t n, const char *label) {
    size_t i = 0;
    while (i < n && strcmp(counts[i].label, label) != 0) {
        i++;
    }
    if (i == n) {
        counts[i] = (struct label_count){.label = label};
        n++;
    }
    counts[i].n++;
    while (i > 0 && counts[i].n > counts[i - 1].n) {
        struct label_count moved = counts[i];
        counts[i] = counts[i - 1];
        counts[--i] = moved;
    }
    return n;
}

enum msc_status msc_plan_summary(char **out, struct msc_arena *arena,
                                 const struct msc_record *record, const uint32_t choices[]) {
    enum { SHOWN = 5 };
    const struct msc_space *space = msc_record_space(record);
    struct label_count *counts = msc_arena_array(arena, space->n_tasks + 1, sizeof *counts);
    struct msc_str text = {0};
    size_t n = 0;
    for (size_t t = 0; counts && t < space->n_tasks; t++) {
        n = count_label(counts, n, space->tasks[t].labels[choices[t]]);
    }
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        msc_str_printf(&text, "%s%zu × %s", i > 0 ? ", " : "", counts[i].n, counts[i].label);
    }
    if (n > SHOWN) {
        msc_str_printf(&text, ", %zu more", n - SHOWN);
    }
    *out = counts ? msc_str_keep(&text, arena) : NULL;
    msc_str_finish(&text);
    return MSC_ALLOCATED(*out);
}
