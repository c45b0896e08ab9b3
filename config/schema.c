// Makes the JSON Schema of a configuration.
//
// Keys, defaults and ranges come from the tables of parameters, and names from the lists of
// environments, agents, metrics and targets. The tables describe lists and objects only in words;
// forms.json has the schemas of these values, by the object and the key that they belong to.
#include "config/config_internal.h"

#include "agents/agent.h"
#include "base/str.h"
#include "graph/target.h"
#include "tools/command.h"

#include <math.h>
#include <stdio.h>

// Greatest number of environments, and of agents.
#define MOST_TYPES 32
// What msc_library_is_path accepts, as a regular expression.
#define LIBRARY "/|[.]so$"
// Above this, a number in JSON may differ from the integer that was written.
#define MOST_EXACT 9007199254740992.0

extern const char msc_config_forms[];

struct writer {
    struct msc_str text;
    const cJSON *values; // of forms.json: the schemas of values, by object and key
};

// An object of a configuration. It becomes a definition of the schema.
struct object {
    const char *name;
    const struct msc_param *params;
};

static const struct object objects[] = {
    {"section_prune", msc_config__section_params},
    {"section_joint", msc_config__section_params},
    {"section_quantize", msc_config__section_params},
    {"search_prune", msc_config__gym_params},
    {"search_joint", msc_config__gym_params},
    {"search_quantize", msc_config__gym_params},
    {"search_gym", msc_config__gym_params},
    {"pass", msc_config__pass_params},
    {"dataset", msc_config__data_params},
    {"image", msc_config__image_params},
    {"validation", msc_config__validation_params},
    {"baseline", msc_config__baseline_params},
    {"check_config", msc_config__check_params},
    {"runtime", msc_config__runtime_params},
    {"budget", msc_config__budget_params},
    {"race", msc_config__race_params},
    {"rerank", msc_config__rerank_params},
    {"command", msc_command_params},
    {"distill", msc_config__distill_params},
    {"equalize", msc_config__equalize_params},
    {"prepare", msc_config__prepare_params},
    {"parse", msc_config__parse_params},
    {"optimize", msc_config__optimize_params},
    {"track", msc_config__track_params},
    {"compile", msc_config__compile_params},
    {"export", msc_config__export_params},
    {"profile", msc_config__profile_params},
};

// ---- Values -----------------------------------------------------------------------------------

// Appends `"name":`, after a comma unless it is the first member of its object.
static void key(struct writer *w, const char *name) {
    char last = w->text.length > 0 ? w->text.data[w->text.length - 1] : '{';
    msc_str_append(&w->text, last == '{' || last == '[' ? "" : ",");
    msc_json_write_text(&w->text, name);
    msc_str_char(&w->text, ':');
}

static void limit(struct writer *w, const char *name, double value) {
    if (isfinite(value)) {
        key(w, name);
        msc_json_write_number(&w->text, value);
    }
}

static void text_enum(struct writer *w, const char *names) {
    key(w, "enum");
    msc_str_append(&w->text, "[\"");
    for (const char *c = names; *c; c++) {
        msc_str_append_n(&w->text, *c == '|' ? "\",\"" : c, *c == '|' ? 3 : 1);
    }
    msc_str_append(&w->text, "\"]");
}

// Appends the members that restrict a value to the parameter's type and range.
static void type_members(struct writer *w, const struct msc_param *p) {
    static const char *const names[] = {
        [MSC_PARAM_BOOL] = "boolean", [MSC_PARAM_I64] = "integer", [MSC_PARAM_F64] = "number",
        [MSC_PARAM_TEXT] = "string",  [MSC_PARAM_WORD] = "string",
    };
    if (p->type == MSC_PARAM_ENUM) {
        text_enum(w, p->names);
    } else if (p->type == MSC_PARAM_DURATION) {
        msc_str_append(&w->text, ",\"allOf\":[{\"$ref\":\"#/definitions/time\"}]");
    } else if (p->type == MSC_PARAM_I64 && p->max > MOST_EXACT) { // text holds every integer
        msc_str_append(&w->text, ",\"type\":[\"integer\",\"string\"],\"pattern\":\"^-?[0-9]+$\"");
    } else if (p->type == MSC_PARAM_TEXT && !p->text) { // a text that is not set is written as null
        msc_str_append(&w->text, ",\"type\":[\"string\",\"null\"]");
    } else if (p->type != MSC_PARAM_JSON && p->type != MSC_PARAM_OBJECT) {
        msc_str_printf(&w->text, ",\"type\":\"%s\"", names[p->type]);
    }
    if ((p->type == MSC_PARAM_I64 || p->type == MSC_PARAM_F64) && (p->min != 0 || p->max != 0)) {
        limit(w, "minimum", p->min);
        limit(w, "maximum", p->max);
    }
}

static void default_member(struct writer *w, const struct msc_param *p) {
    bool is_text =
        p->type == MSC_PARAM_TEXT || p->type == MSC_PARAM_WORD || p->type == MSC_PARAM_ENUM;
    if (is_text && p->text) {
        key(w, "default");
        msc_json_write_text(&w->text, p->text);
    } else if (p->type == MSC_PARAM_BOOL) {
        key(w, "default");
        msc_str_append(&w->text, p->number != 0 ? "true" : "false");
    } else if (p->type == MSC_PARAM_I64 || p->type == MSC_PARAM_F64 ||
               p->type == MSC_PARAM_DURATION) {
        limit(w, "default", p->number);
    }
}

// Appends a parameter of the object `name` as a member of its "properties".
static void property(struct writer *w, const char *name, const struct msc_param *p) {
    bool is_plain = p->type != MSC_PARAM_JSON && p->type != MSC_PARAM_OBJECT &&
                    p->type != MSC_PARAM_TEXT && p->type != MSC_PARAM_WORD;
    const cJSON *own = msc_json_get(msc_json_get(w->values, name), p->name);
    const cJSON *form = own        ? own
                        : is_plain ? NULL
                                   : msc_json_get(msc_json_get(w->values, "any"), p->name);
    key(w, p->name);
    msc_str_append(&w->text, "{\"description\":");
    msc_json_write_text(&w->text, p->help ? p->help : "");
    if (form) {
        msc_str_append(&w->text, ",\"allOf\":[");
        msc_json_write(&w->text, form);
        msc_str_char(&w->text, ']');
    } else {
        type_members(w, p);
    }
    default_member(w, p);
    msc_str_char(&w->text, '}');
}

// ---- Objects ----------------------------------------------------------------------------------

// Appends the start of a definition with the properties of a table; the caller may append further
// properties, and then closes it.
static void open_object(struct writer *w, const char *name, const struct msc_param params[]) {
    key(w, name);
    msc_str_append(&w->text,
                   "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (const struct msc_param *p = params; p->name; p++) {
        property(w, name, p);
    }
}

static void close_object(struct writer *w) {
    msc_str_append(&w->text, "}}");
}

// Appends a definition `name`, an object whose member "type" selects among the definitions PREFIX +
// type; without "type", the definition is PREFIX + `usual` (NULL: "type" is required). A type that
// matches the pattern `others` (NULL: none) is allowed, too, and its keys are free.
static void selection(struct writer *w, const char *name, const char *prefix,
                      const char *const types[], const char *usual, const char *others) {
    struct msc_str *t = &w->text;
    key(w, name);
    msc_str_append(t, "{\"type\":\"object\",\"properties\":{\"type\":{\"anyOf\":[{\"enum\":[");
    for (size_t i = 0; types[i]; i++) {
        msc_str_printf(t, "%s\"%s\"", i > 0 ? "," : "", types[i]);
    }
    msc_str_append(t, "]}");
    if (others) {
        msc_str_printf(t, ",{\"type\":\"string\",\"pattern\":\"%s\"}", others);
    }
    msc_str_append(t, usual ? "]}},\"allOf\":[" : "]}},\"required\":[\"type\"],\"allOf\":[");
    for (size_t i = 0; types[i]; i++) {
        msc_str_printf(t,
                       "%s{\"if\":{\"required\":[\"type\"],\"properties\":{\"type\":{\"const\":"
                       "\"%s\"}}},\"then\":{\"$ref\":\"#/definitions/%s%s\"}}",
                       i > 0 ? "," : "", types[i], prefix, types[i]);
    }
    if (usual) {
        msc_str_printf(t,
                       ",{\"if\":{\"not\":{\"required\":[\"type\"]}},\"then\":{\"$ref\":"
                       "\"#/definitions/%s%s\"}}",
                       prefix, usual);
    }
    msc_str_append(t, "]}");
}

// Appends "objectives" and "bounds". If the environment does not say its metrics, all names are
// allowed.
static void goal(struct writer *w, const struct msc_env_def *def) {
    struct msc_str *t = &w->text;
    const struct msc_metric *m = NULL;
    key(w, "type");
    msc_str_append(t, "{\"type\":\"string\"}");
    key(w, "objectives");
    msc_str_printf(t,
                   "{\"description\":\"metrics to optimise\",\"type\":\"array\",\"minItems\":1,"
                   "\"maxItems\":%d,\"items\":{\"type\":\"string\"",
                   MSC_MAX_OBJECTIVES);
    if (def->metric) {
        msc_str_append(t, ",\"enum\":[");
        for (size_t i = 0; (m = def->metric(i)); i++) {
            msc_str_printf(t, "%s\"%s\"", i > 0 ? "," : "", m->name);
        }
        msc_str_char(t, ']');
    }
    msc_str_append(t, "}}");
    key(w, "bounds");
    msc_str_append(t, "{\"description\":\"limits on metrics, by name\",\"type\":\"object\","
                      "\"properties\":{");
    for (size_t i = 0; def->metric && (m = def->metric(i)); i++) {
        key(w, m->name);
        msc_str_append(t, "{\"description\":");
        msc_json_write_text(t, m->help ? m->help : "");
        msc_str_append(t, ",\"allOf\":[{\"$ref\":\"#/definitions/limit\"}]}");
    }
    msc_str_printf(t,
                   "},\"patternProperties\":{\"^.*_drop(_ratio)?$\":{\"$ref\":\"#/definitions/"
                   "drop\"}},\"additionalProperties\":%s}",
                   def->metric ? "false" : "{\"$ref\":\"#/definitions/limit\"}");
}

static void environments(struct writer *w) {
    const char *names[MOST_TYPES + 1] = {0};
    const struct msc_env_def *const *list = msc_env_list();
    char name[64];
    for (size_t i = 0; list[i] && i < MOST_TYPES; i++) {
        names[i] = list[i]->name;
        snprintf(name, sizeof name, "env_%s", names[i]);
        open_object(w, name, list[i]->params);
        goal(w, list[i]);
        close_object(w);
    }
    for (size_t t = 0; t < MSC_CONFIG_TOOL_COUNT; t++) {
        snprintf(name, sizeof name, "env_of_%s", msc_config__tools[t].name);
        selection(w, name, "env_", names, msc_config__tools[t].name, LIBRARY);
    }
    selection(w, "env_of_gym", "env_", names, NULL, LIBRARY);
}

static void agent_object(struct writer *w, const struct msc_agent_def *def) {
    char name[64];
    snprintf(name, sizeof name, "agent_%s", def->name);
    open_object(w, name, def->params);
    key(w, "type");
    msc_str_append(&w->text, "{\"type\":\"string\"}");
    close_object(w);
}

static void agents(struct writer *w) {
    const char *names[MOST_TYPES + 3] = {0};
    const struct msc_agent_def *const *list = msc_agent_list();
    size_t n = 0;
    for (; list[n] && n < MOST_TYPES; n++) {
        names[n] = list[n]->name;
        agent_object(w, list[n]);
    }
    names[n] = msc_agent_process.name;
    agent_object(w, &msc_agent_process);
    names[n + 1] = "library";
    selection(w, "agent", "agent_", names, "auto", NULL);
}

static void targets(struct writer *w) {
    const struct msc_target *target = NULL;
    msc_str_append(&w->text, ",\"target\":{\"enum\":[");
    for (size_t i = 0; (target = msc_target_at(i)); i++) {
        msc_str_printf(&w->text, "%s\"%s\"", i > 0 ? "," : "", target->name);
        if (target->alias) {
            msc_str_printf(&w->text, ",\"%s\"", target->alias);
        }
    }
    msc_str_append(&w->text, "]}");
}

// ---- The document -----------------------------------------------------------------------------

static void write_schema(struct writer *w, const cJSON *definitions) {
    const cJSON *item = NULL;
    msc_str_append(&w->text, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
                             "\"title\":\"Configuration of mscgym\",\"type\":\"object\","
                             "\"additionalProperties\":false,\"properties\":{");
    for (const struct msc_param *p = msc_config__top_params; p->name; p++) {
        property(w, "configuration", p);
    }
    msc_str_append(&w->text, "},\"definitions\":{");
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        open_object(w, objects[i].name, objects[i].params);
        close_object(w);
    }
    environments(w);
    agents(w);
    targets(w);
    cJSON_ArrayForEach(item, definitions) {
        key(w, item->string);
        msc_json_write(&w->text, item);
    }
    msc_str_append(&w->text, "}}");
}

enum msc_status msc_config_schema(struct cJSON **out) {
    struct writer w = {0};
    cJSON *forms = NULL;
    *out = NULL;
    MSC_TRY(msc_json_parse(&forms, msc_config_forms, strlen(msc_config_forms), "forms.json"));
    w.values = msc_json_get(forms, "values");
    write_schema(&w, msc_json_get(forms, "definitions"));
    enum msc_status status = msc_str_status(&w.text);
    if (status == MSC_OK) {
        status = msc_json_parse(out, w.text.data, w.text.length, "schema");
    }
    msc_str_finish(&w.text);
    cJSON_Delete(forms);
    return status;
}
