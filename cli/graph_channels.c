#include "cli/graph_channels.h"

#include "cli/console.h"
#include "cli/table.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "base/table.h"
#include "graph/channels.h"
#include "graph/passes/bind.h"

#include <stdio.h>
#include <string.h>

struct listing {
    const struct msc_graph *g;
    struct msc_channels channels;
    bool *is_gone; // [n_units]
    struct msc_channel_cost whole;
};

// Shares of parameters and multiply-accumulates that the network loses without units
// [first, first + n).
static enum msc_status find_share(struct msc_channel_cost *out, struct listing *l, int32_t first,
                                  int32_t n) {
    memset(l->is_gone + first, 1, (size_t)n * sizeof(l->is_gone[0]));
    enum msc_status status = msc_channels_cost(out, &l->channels, l->g, l->is_gone);
    memset(l->is_gone + first, 0, (size_t)n * sizeof(l->is_gone[0]));
    out->parameters = l->whole.parameters > 0 ? 1 - out->parameters / l->whole.parameters : 0;
    out->macs = l->whole.macs > 0 ? 1 - out->macs / l->whole.macs : 0;
    return status;
}

static bool is_weight(const struct listing *l, const struct msc_channel_axis *a) {
    return msc_graph_tensor(l->g, a->tensor)->producer == MSC_NO_ID;
}

// Kinds of weight axes in a group.
enum part { MAKES, READS, FOLLOWS };

static bool is_part(const struct listing *l, const struct msc_channel_axis *a, enum part part) {
    static const unsigned roles[] = {[MAKES] = MSC_CHANNEL_MAKES, [READS] = MSC_CHANNEL_READS};
    return is_weight(l, a) && (part == FOLLOWS ? a->roles == 0 : (a->roles & roles[part]) != 0);
}

// ---- For people -------------------------------------------------------------------------------

static void add_share(struct msc_table *table, double share) {
    char text[32];
    snprintf(text, sizeof text, "%.2f %%", 100 * share);
    msc_table_add(table, text);
}

// Adds the name of the first weight, and how many more weights there are.
static void add_part(struct msc_table *table, const struct listing *l,
                     const struct msc_channel_group *group, enum part part) {
    struct msc_str text = {0};
    const char *first = "";
    int n = 0;
    for (int32_t i = 0; i < group->n_axes; i++) {
        if (is_part(l, &group->axes[i], part)) {
            first = n++ == 0 ? msc_graph_tensor(l->g, group->axes[i].tensor)->name : first;
        }
    }
    msc_cli_write_short(&text, first, MSC_CLI_NAME_COLUMNS);
    if (n > 1) {
        msc_str_printf(&text, " and %d more", n - 1);
    }
    msc_table_add(table, msc_str_text(&text));
    table->failed |= text.failed;
    msc_str_finish(&text);
}

static enum msc_status write_text(struct msc_str *out, struct listing *l) {
    enum { NAME = 3 };
    static const char *const head[] = {"units", "parameters", "MACs", "name", "read by"};
    struct msc_table table = {.n_columns = 5, .key = NAME, .is_left = true};
    struct msc_channel_cost share;
    struct msc_str text = {0};
    enum msc_status status = MSC_OK;
    for (size_t i = 0; i < table.n_columns; i++) {
        msc_table_add(&table, head[i]);
    }
    for (int32_t i = 0; status == MSC_OK && i < l->channels.n_groups; i++) {
        const struct msc_channel_group *group = &l->channels.groups[i];
        char number[16];
        snprintf(number, sizeof number, "%d", (int)group->n_units);
        status = find_share(&share, l, group->first_unit, group->n_units);
        msc_table_add(&table, number);
        add_share(&table, share.parameters);
        add_share(&table, share.macs);
        msc_str_clear(&text);
        msc_cli_write_short(&text, group->name, MSC_CLI_NAME_COLUMNS);
        msc_table_add(&table, msc_str_text(&text));
        add_part(&table, l, group, READS);
    }
    table.failed |= text.failed;
    msc_str_finish(&text);
    msc_table_write(out, &table, msc_cli_terminal_columns());
    msc_table_finish(&table);
    MSC_TRY(status);
    MSC_TRY(find_share(&share, l, 0, l->channels.n_units));
    msc_str_printf(out,
                   "%d units in %d group%s; pruning all of them removes %.2f %% of %.0f parameters "
                   "and %.2f %% of the MACs\n",
                   (int)l->channels.n_units, (int)l->channels.n_groups,
                   l->channels.n_groups == 1 ? "" : "s", 100 * share.parameters,
                   l->whole.parameters, 100 * share.macs);
    return msc_str_status(out);
}

// ---- JSON -------------------------------------------------------------------------------------

// Adds the unit of each index of a weight's axis, counted from 0 within the group; -1 if the index
// belongs to no unit of the group.
static enum msc_status add_units(cJSON *object, const struct listing *l,
                                 const struct msc_channel_group *group,
                                 const struct msc_channel_axis *a) {
    const int32_t *units = l->channels.units[a->tensor * MSC_MAX_DIMS + a->axis];
    const int64_t length = msc_graph_tensor(l->g, a->tensor)->dims[a->axis];
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "unit_of_index", list));
    for (int64_t i = 0; i < length; i++) {
        const int32_t unit = units[i] - group->first_unit;
        const bool is_own = units[i] != MSC_NO_ID && unit >= 0 && unit < group->n_units;
        MSC_TRY(msc_json_push(list, cJSON_CreateNumber(is_own ? unit : -1)));
    }
    return MSC_OK;
}

static enum msc_status add_axes(cJSON *object, const char *key, const struct listing *l,
                                const struct msc_channel_group *group, enum part part) {
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, key, list));
    for (int32_t i = 0; i < group->n_axes; i++) {
        const struct msc_channel_axis *a = &group->axes[i];
        if (is_part(l, a, part)) {
            cJSON *axis = cJSON_CreateObject();
            MSC_TRY(msc_json_push(list, axis));
            MSC_TRY(msc_json_add_text(axis, "weight", msc_graph_tensor(l->g, a->tensor)->name));
            MSC_TRY(msc_json_add(axis, "axis", cJSON_CreateNumber(a->axis)));
            MSC_TRY(msc_json_add(axis, "indices", cJSON_CreateNumber(a->n)));
            MSC_TRY(add_units(axis, l, group, a));
        }
    }
    return MSC_OK;
}

static enum msc_status add_group(cJSON *list, struct listing *l,
                                 const struct msc_channel_group *group) {
    struct msc_channel_cost share;
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(find_share(&share, l, group->first_unit, group->n_units));
    MSC_TRY(msc_json_add_text(object, "name", group->name));
    MSC_TRY(msc_json_add(object, "units", cJSON_CreateNumber(group->n_units)));
    MSC_TRY(msc_json_add(object, "parameters_ratio", cJSON_CreateNumber(share.parameters)));
    MSC_TRY(msc_json_add(object, "macs_ratio", cJSON_CreateNumber(share.macs)));
    MSC_TRY(add_axes(object, "makes", l, group, MAKES));
    MSC_TRY(add_axes(object, "reads", l, group, READS));
    return add_axes(object, "follows", l, group, FOLLOWS);
}

static enum msc_status write_json(cJSON *object, struct listing *l) {
    struct msc_channel_cost share;
    MSC_TRY(find_share(&share, l, 0, l->channels.n_units));
    MSC_TRY(msc_json_add(object, "units", cJSON_CreateNumber(l->channels.n_units)));
    MSC_TRY(msc_json_add(object, "parameters", cJSON_CreateNumber(l->whole.parameters)));
    MSC_TRY(msc_json_add(object, "parameters_ratio", cJSON_CreateNumber(share.parameters)));
    MSC_TRY(msc_json_add(object, "macs_ratio", cJSON_CreateNumber(share.macs)));
    cJSON *list = cJSON_CreateArray();
    MSC_TRY(msc_json_add(object, "groups", list));
    for (int32_t i = 0; i < l->channels.n_groups; i++) {
        MSC_TRY(add_group(list, l, &l->channels.groups[i]));
    }
    return MSC_OK;
}

// ---- Both -------------------------------------------------------------------------------------

static enum msc_status fill_listing(struct listing *l, const struct msc_sites *sites) {
    MSC_TRY(msc_channels_find(&l->channels, l->g, sites));
    l->is_gone = msc_alloc_zero((size_t)l->channels.n_units + 1, sizeof(l->is_gone[0]));
    MSC_TRY(MSC_ALLOCATED(l->is_gone));
    return msc_channels_cost(&l->whole, &l->channels, l->g, l->is_gone);
}

enum msc_status msc_cli_print_channels(const struct msc_graph *g, bool as_json) {
    struct msc_graph *split = NULL;
    struct msc_sites sites = {0};
    struct listing l = {0};
    struct msc_str text = {0};
    cJSON *object = cJSON_CreateObject();
    enum msc_status status = MSC_OK;
    MSC_TRY_OUT(msc_graph_split(&split, g));
    l.g = split;
    MSC_TRY_OUT(msc_sites_find(&sites, split, NULL));
    MSC_TRY_OUT(fill_listing(&l, &sites));
    if (as_json) {
        MSC_TRY_OUT(write_json(object, &l));
        status = msc_cli_print_json(object);
    } else {
        MSC_TRY_OUT(write_text(&text, &l));
        status = msc_cli_print_str(&text);
    }
out:
    cJSON_Delete(object);
    msc_str_finish(&text);
    msc_free(l.is_gone);
    msc_channels_finish(&l.channels);
    msc_sites_finish(&sites);
    msc_graph_destroy(split);
    return status;
}
