// The figure of the network with its plan: joints in layers, with bits of weights and activations.
#include "report/figures_internal.h"

#include "model/output.h"
#include "report/html.h"
#include "report/page_internal.h"

#include <stdio.h>
#include <string.h>

// Size of a joint and distance to the next one, as on a page (report/page_network.js).
enum { WIDTH = 136, HEIGHT = 40, STEP_X = 152, STEP_Y = 72, MARGIN = 8 };
// Larger networks have no figure: nobody could read it.
#define MOST_JOINTS 400

struct place {
    double x, y;
    double column, layer;
};

static struct place place_of(const cJSON *joint) {
    double column = msc_page__number(joint, "column"), layer = msc_page__number(joint, "layer");
    return (struct place){column * STEP_X + MARGIN, layer * STEP_Y + MARGIN, column, layer};
}

static void write_edge(struct msc_str *out, struct place from, struct place to) {
    double x1 = from.x + WIDTH / 2.0, y1 = from.y + HEIGHT, x2 = to.x + WIDTH / 2.0, y2 = to.y;
    // A long edge passes the joints in between.
    bool is_long = to.layer - from.layer > 1.0 && fabs(from.column - to.column) < 0.6;
    double side = is_long ? WIDTH * 0.62 : 0.0, middle = is_long ? 30.0 : (y2 - y1) / 2.0;
    msc_str_printf(out,
                   "<path fill=\"none\" stroke=\"#7d8794\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f "
                   "%.1f %.1f\"/>\n",
                   x1, y1, x1 + side, y1 + middle, x2 + side, y2 - middle, x2, y2);
}

static const char *color_of(double bits) {
    return bits <= 3.0   ? "#5b1a86"
           : bits <= 5.0 ? "#8e3fb0"
           : bits <= 7.0 ? "#3f6fc4"
           : bits <= 8.0 ? "#2f8a8f"
                         : "#8b95a1";
}

static char letter_of(const cJSON *row) {
    const char *kind = msc_page__text(row, "kind");
    return strcmp(kind, "weight") == 0 ? 'W' : strcmp(kind, "activation") == 0 ? 'A' : ' ';
}

// Writes the plan's choices at a joint: "W4 A8"; the shape if there are none.
static void write_choices(struct msc_str *out, const cJSON *joint, const cJSON *plan) {
    const cJSON *task = NULL;
    const char *before = "";
    cJSON_ArrayForEach(task, msc_json_get(joint, "tasks")) {
        const cJSON *row = cJSON_GetArrayItem(plan, (int)task->valuedouble);
        double bits = msc_page__number(row, "bits"), density = msc_page__number(row, "density");
        if (!isnan(bits)) {
            msc_str_printf(out, "%s%c%.0f", before, letter_of(row), bits);
        } else if (!isnan(density)) {
            msc_str_printf(out, "%s%.0f %%", before, 100.0 * density);
        } else {
            continue;
        }
        before = " · ";
    }
    if (before[0] == '\0') {
        msc_str_append(out, msc_page__text(joint, "shape"));
    }
}

static void write_text(struct msc_str *out, double x, double y, const char *color, size_t most,
                       struct msc_arena *arena, const char *text) {
    const char *shown = strlen(text) > most ? msc_figures__shorten(arena, text) : text;
    msc_str_printf(out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">", x, y, color);
    msc_html_text(out, shown ? shown : "");
    msc_str_append(out, "</text>\n");
}

static double first_bits(const cJSON *joint, const cJSON *plan) {
    const cJSON *task = NULL;
    double bits = NAN;
    cJSON_ArrayForEach(task, msc_json_get(joint, "tasks")) {
        const cJSON *row = cJSON_GetArrayItem(plan, (int)task->valuedouble);
        bool is_better = isnan(bits) || letter_of(row) == 'W';
        double now = msc_page__number(row, "bits");
        bits = is_better && !isnan(now) ? now : bits;
    }
    return bits;
}

static void write_joint(struct msc_str *out, const cJSON *joint, const cJSON *plan,
                        struct msc_arena *arena) {
    struct place p = place_of(joint);
    struct msc_str choices = {0};
    const char *op = msc_page__text(joint, "op");
    double bits = first_bits(joint, plan);
    op += strncmp(op, "nn.", 3) == 0 ? 3 : strncmp(op, "msc.", 4) == 0 ? 4 : 0;
    msc_str_printf(out, "<g><title>");
    msc_html_name(out, msc_page__text(joint, "name"));
    msc_str_printf(out,
                   "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"6\" "
                   "fill=\"#ffffff\" stroke=\"#bbbbbb\"/>\n",
                   p.x, p.y, WIDTH, HEIGHT);
    if (!isnan(bits)) {
        msc_str_printf(out,
                       "<rect x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"%d\" rx=\"3\" "
                       "fill=\"%s\"/>\n",
                       p.x, p.y, HEIGHT, color_of(bits));
    }
    write_choices(&choices, joint, plan);
    write_text(out, p.x + 14.0, p.y + 16.0, "#1b1f24", 20, arena, op);
    write_text(out, p.x + 14.0, p.y + 31.0, "#5a636e", 24, arena, msc_str_text(&choices));
    msc_str_append(out, "</g>\n");
    out->failed |= choices.failed;
    msc_str_finish(&choices);
}

// The places of all joints, in the arena.
static enum msc_status find_places(struct place **out, struct msc_arena *arena,
                                   const cJSON *joints) {
    const cJSON *joint = NULL;
    size_t n = 0;
    *out = msc_arena_array(arena, (size_t)cJSON_GetArraySize(joints) + 1, sizeof **out);
    MSC_TRY(MSC_ALLOCATED(*out));
    cJSON_ArrayForEach(joint, joints) {
        (*out)[n++] = place_of(joint);
    }
    return MSC_OK;
}

static enum msc_status write_network(struct msc_str *out, const struct msc_figures_subject *s,
                                     const cJSON *graph) {
    const cJSON *joints = msc_json_get(graph, "joints"), *item = NULL;
    const cJSON *plan = msc_json_get(s->record, "plan");
    struct place *places = NULL;
    double width = msc_page__number(graph, "columns") * STEP_X + MARGIN;
    double height = msc_page__number(graph, "layers") * STEP_Y;
    MSC_TRY(find_places(&places, &s->to->arena, joints));
    msc_str_printf(out,
                   MSC_OUTPUT_FIGURE_BEGINNING
                   " width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                   "font-family=\"sans-serif\" font-size=\"11\">\n<title>",
                   width, height, width, height);
    msc_html_name(out, s->prefix);
    msc_str_append(out, ": the network with its plan</title>\n"
                        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
    cJSON_ArrayForEach(item, msc_json_get(graph, "edges")) {
        write_edge(out, places[(size_t)item->child->valuedouble],
                   places[(size_t)item->child->next->valuedouble]);
    }
    cJSON_ArrayForEach(item, joints) {
        write_joint(out, item, plan, &s->to->arena);
    }
    msc_str_append(out, "</svg>\n");
    return msc_str_status(out);
}

enum msc_status msc_figures__network(const struct msc_figures_subject *s) {
    const cJSON *graph = msc_json_get(s->record, "graph");
    int n = cJSON_GetArraySize(msc_json_get(graph, "joints"));
    struct msc_str svg = {0};
    return n == 0 || n > MOST_JOINTS
               ? MSC_OK
               : msc_figures__keep(s, "network", &svg, write_network(&svg, s, graph));
}
