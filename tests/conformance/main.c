// Runs ONNX's backend test data and reports which cases pass. The expected outputs are part of
// the data.
//
//     test_conformance [--device NAME]... [--markdown FILE] [--known FILE] [--at-least N]
//                      [--only TEXT] [--rewritten PATH] [--atol X] [--meaning text|target]
//                      [--title TEXT] FOLDER... [--title TEXT FOLDER...]...
//
// A FOLDER contains cases. The program fails if fewer than N cases are in scope. It also fails if a
// case fails that is not in the known file (as a line "DEVICE CASE"), or if a case in that file
// passes. If a device or a folder is missing, the program reports it and exits with 77 (skipped). A
// title is printed above the table of the folders after it. With --rewritten PATH every model is
// first exported to PATH and read from there; known failures with this option are listed under
// "DEVICE-rewritten". If PATH ends in .msc or .json, the MSCGraph is written and read instead, and
// must have no other failures than the model itself. --meaning selects what operators mean: what
// targets compute, or ONNX's text (graph/targets.def), which ONNX's test data follow. X defaults to
// 1e-7, as in ONNX's own backend test.
#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "kernels/engine/backends.h"
#include "kernels/vulkan/vulkan.h"
#include "tests/conformance/run.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 4, MAX_FOLDERS = 16, SKIPPED = 77 };

struct options {
    const char *devices[MAX_DEVICES];
    int n_devices;
    const char *folders[MAX_FOLDERS];
    const char *titles[MAX_FOLDERS]; // NULL: in the same table as the folder before
    int n_folders;
    const char *markdown, *known, *only;
    struct conformance_options run;
    long at_least;
};

struct row {
    char *name, *op;
    const char *why_out;
    int folder;
    struct conformance_result results[MAX_DEVICES];
};

struct report {
    const struct options *options;
    struct msc_backend *backends[MAX_DEVICES];
    struct row *rows;
    size_t n, capacity;
    char *known; // text of the file of known failures, or NULL
    long n_in_scope, n_unexpected;
};

// ---- Cases ------------------------------------------------------------------------------------

// Returns whether "DEVICE CASE" is a line of the known failures.
static bool is_known(const struct report *r, const char *device, const char *name) {
    char line[256];
    int n = snprintf(line, sizeof line, "%s %s\n", device, name);
    const char *at = r->known == NULL ? NULL : strstr(r->known, line);
    for (; at != NULL && at != r->known && at[-1] != '\n';) {
        at = strstr(at + 1, line);
    }
    return at != NULL && n < (int)sizeof line;
}

static bool is_exported(const struct conformance_options *o) {
    return o->rewritten != NULL && !msc_graph_can_save(o->rewritten);
}

static void note_result(struct report *r, const struct row *row, int d) {
    const struct conformance_result *result = &row->results[d];
    char device[64];
    snprintf(device, sizeof device, "%s%s", r->options->devices[d],
             is_exported(&r->options->run) ? "-rewritten" : "");
    bool known = is_known(r, device, row->name);
    if (result->is_passed == known) {
        printf("%s %s (%s): %s\n", device, row->name, row->op,
               known ? "passes now; take it from the known failures" : result->reason);
        r->n_unexpected++;
    }
}

static enum msc_status run_case(struct report *r, const char *folder, const char *name, int f) {
    struct conformance_case c;
    enum msc_status status = conformance_case_load(&c, folder);
    MSC_TRY(msc_grow(&r->rows, &r->capacity, r->n + 1, sizeof r->rows[0]));
    struct row *row = &r->rows[r->n++];
    *row =
        (struct row){.name = strdup(name), .op = strdup(c.op), .why_out = c.why_out, .folder = f};
    for (int d = 0; c.why_out == NULL && d < r->options->n_devices; d++) {
        if (status == MSC_OK) {
            conformance_run(&row->results[d], &c, r->backends[d], &r->options->run);
        } else {
            snprintf(row->results[d].reason, sizeof row->results[d].reason, "%s",
                     msc_status_message());
        }
        note_result(r, row, d);
    }
    r->n_in_scope += c.why_out == NULL;
    conformance_case_finish(&c);
    return MSC_OK;
}

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static enum msc_status run_folder(struct report *r, int f) {
    const char *folder = r->options->folders[f], *only = r->options->only;
    struct dirent **entries;
    int n = scandir(folder, &entries, is_visible, alphasort);
    enum msc_status status = n < 0 ? MSC_FAIL(MSC_E_IO, "cannot list %s", folder) : MSC_OK;
    for (int i = 0; i < n; i++) {
        char path[CONFORMANCE_PATH_BYTES], model[CONFORMANCE_PATH_BYTES + 16];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        snprintf(model, sizeof model, "%s/model.onnx", path);
        bool is_wanted = only == NULL || strstr(entries[i]->d_name, only) != NULL;
        if (status == MSC_OK && is_wanted && msc_file_exists(model)) {
            status = run_case(r, path, entries[i]->d_name, f);
        }
        free(entries[i]);
    }
    if (n >= 0) {
        free(entries);
    }
    return status;
}

// ---- The report -------------------------------------------------------------------------------

// Appends a reason to a table cell, without characters that Markdown would interpret.
static void write_reason(struct msc_str *out, const char *text) {
    for (; *text != '\0'; text++) {
        msc_str_char(out, *text == '|' || *text == '\n' ? '/' : *text);
    }
}

static void write_row(struct msc_str *out, const struct report *r, const struct row *row) {
    msc_str_printf(out, "| %s | %s |", row->name, row->op);
    for (int d = 0; d < r->options->n_devices; d++) {
        const struct conformance_result *result = &row->results[d];
        if (row->why_out != NULL) {
            msc_str_printf(out, " out of scope: %s |", row->why_out);
        } else if (result->is_passed) {
            bool is_elsewhere = result->elsewhere[0] != '\0';
            msc_str_append(out, result->is_stepwise ? " pass (joint by joint)" : " pass");
            msc_str_printf(out, is_elsewhere ? " (cpu: %s) |" : "%s |", result->elsewhere);
        } else {
            msc_str_append(out, " fail: ");
            write_reason(out, result->reason);
            msc_str_append(out, " |");
        }
    }
    msc_str_char(out, '\n');
}

static long count_passed(const struct report *r, int d) {
    long n = 0;
    for (size_t i = 0; i < r->n; i++) {
        n += r->rows[i].why_out == NULL && r->rows[i].results[d].is_passed;
    }
    return n;
}

// Returns whether the row belongs to the table of folder `f` and of the untitled folders after `f`.
static bool is_of_table(const struct report *r, const struct row *row, int f) {
    int first = row->folder;
    while (first > 0 && r->options->titles[first] == NULL) {
        first--;
    }
    return first == f;
}

// Writes a table's head with the number of its cases that pass.
static void write_head(struct msc_str *out, const struct report *r, int f) {
    long n = 0, n_in_scope = 0, n_passed[MAX_DEVICES] = {0};
    for (size_t i = 0; i < r->n; i++) {
        const struct row *row = &r->rows[i];
        if (is_of_table(r, row, f)) {
            n++;
            n_in_scope += row->why_out == NULL;
            for (int d = 0; d < r->options->n_devices; d++) {
                n_passed[d] += row->why_out == NULL && row->results[d].is_passed;
            }
        }
    }
    const char *title = r->options->titles[f];
    msc_str_printf(out, "\n## %s\n\n%ld cases, %ld of them in scope.", title ? title : "Cases", n,
                   n_in_scope);
    for (int d = 0; d < r->options->n_devices; d++) {
        msc_str_printf(out, " %s passes %ld.", r->options->devices[d], n_passed[d]);
    }
    msc_str_append(out, "\n\n| case | op |");
    for (int d = 0; d < r->options->n_devices; d++) {
        msc_str_printf(out, " %s |", r->options->devices[d]);
    }
    msc_str_append(out, "\n|---|---|");
    for (int d = 0; d < r->options->n_devices; d++) {
        msc_str_append(out, "---|");
    }
    msc_str_char(out, '\n');
}

static void write_folder(struct msc_str *out, const struct report *r, int f) {
    if (f == 0 || r->options->titles[f] != NULL) {
        write_head(out, r, f);
        for (size_t i = 0; i < r->n; i++) {
            if (is_of_table(r, &r->rows[i], f)) {
                write_row(out, r, &r->rows[i]);
            }
        }
    }
}

static enum msc_status write_markdown(const struct report *r) {
    struct msc_str out = {0};
    msc_str_append(
        &out, "# ONNX conformance, case by case\n\n"
              "Every case of ONNX's backend test data on each backend, written by "
              "`test_conformance\n--markdown`; docs/conformance.md counts cases by operator and "
              "explains the notes.\n");
    for (int f = 0; f < r->options->n_folders; f++) {
        write_folder(&out, r, f);
    }
    enum msc_status status = msc_str_status(&out);
    if (status == MSC_OK) {
        status = msc_file_write(r->options->markdown, out.data, out.length);
    }
    msc_str_finish(&out);
    return status;
}

// ---- The program ------------------------------------------------------------------------------

static bool read_options(struct options *o, int argc, char **argv) {
    const char *title = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strncmp(argv[i], "--", 2) != 0) {
            if (o->n_folders == MAX_FOLDERS) {
                return false;
            }
            o->titles[o->n_folders] = title;
            o->folders[o->n_folders++] = argv[i];
            title = NULL;
            continue;
        }
        if (value == NULL) {
            return false;
        }
        if (strcmp(argv[i], "--device") == 0 && o->n_devices < MAX_DEVICES) {
            o->devices[o->n_devices++] = value;
        } else if (strcmp(argv[i], "--markdown") == 0) {
            o->markdown = value;
        } else if (strcmp(argv[i], "--known") == 0) {
            o->known = value;
        } else if (strcmp(argv[i], "--rewritten") == 0) {
            o->run.rewritten = value;
        } else if (strcmp(argv[i], "--meaning") == 0) {
            o->run.by_text = strcmp(value, "text") == 0;
        } else if (strcmp(argv[i], "--atol") == 0) {
            o->run.atol = strtod(value, NULL);
        } else if (strcmp(argv[i], "--title") == 0) {
            title = value;
        } else if (strcmp(argv[i], "--only") == 0) {
            o->only = value;
        } else if (strcmp(argv[i], "--at-least") == 0) {
            o->at_least = strtol(value, NULL, 10);
        } else {
            return false;
        }
        i++;
    }
    return o->n_folders > 0;
}

// Returns false and prints the reason if the machine lacks a folder or all devices.
static bool open_all(struct report *r) {
    const struct options *o = r->options;
    struct msc_backend_options backend_options = MSC_BACKEND_OPTIONS_INIT;
    for (int f = 0; f < o->n_folders; f++) {
        if (!msc_file_exists(o->folders[f])) {
            printf("skipped: no folder %s: install libonnx-testdata, or run scripts/fetch-models\n",
                   o->folders[f]);
            return false;
        }
    }
    for (int d = 0; d < o->n_devices; d++) {
        if (msc_backend_open(&r->backends[d], o->devices[d], &backend_options) != MSC_OK) {
            printf("skipped: %s\n", msc_status_message());
            return false;
        }
    }
    return true;
}

static enum msc_status run_all(struct report *r) {
    const struct options *o = r->options;
    size_t n_bytes;
    if (o->known != NULL) {
        MSC_TRY(msc_file_read(&r->known, &n_bytes, o->known));
    }
    for (int f = 0; f < o->n_folders; f++) {
        MSC_TRY(run_folder(r, f));
    }
    return o->markdown == NULL ? MSC_OK : write_markdown(r);
}

// Counts messages of the Vulkan validation layer, which MSC_VULKAN_VALIDATE=1 enables.
static int count_messages(const struct report *r) {
    int n = 0;
    for (int d = 0; d < r->options->n_devices; d++) {
        const struct msc_backend *b = r->backends[d];
        n += b != NULL && b->def == &msc_backend_vulkan ? msc_vulkan_n_messages(b) : 0;
    }
    return n;
}

static void finish(struct report *r) {
    for (int d = 0; d < r->options->n_devices; d++) {
        msc_backend_close(r->backends[d]);
    }
    for (size_t i = 0; i < r->n; i++) {
        free(r->rows[i].name);
        free(r->rows[i].op);
    }
    msc_free(r->rows);
    msc_free(r->known);
}

int main(int argc, char **argv) {
    struct options options = {.run = {.atol = 1e-7}};
    if (!read_options(&options, argc, argv)) {
        fprintf(stderr,
                "usage: %s [--device NAME] [--markdown FILE] [--known FILE] [--at-least N] "
                "[--only TEXT] [--title TEXT] FOLDER...\n",
                argv[0]);
        return 2;
    }
    if (options.n_devices == 0) {
        options.devices[options.n_devices++] = "cpu";
    }
    struct report report = {.options = &options};
    if (!open_all(&report)) {
        finish(&report);
        return SKIPPED;
    }
    enum msc_status status = run_all(&report);
    if (status != MSC_OK) {
        printf("%s\n", msc_status_message());
    }
    printf("%zu cases, %ld in scope\n", report.n, report.n_in_scope);
    for (int d = 0; d < options.n_devices; d++) {
        printf("%s: %ld pass, %ld fail\n", options.devices[d], count_passed(&report, d),
               report.n_in_scope - count_passed(&report, d));
    }
    int n_messages = count_messages(&report);
    if (n_messages > 0) {
        printf("%d messages of the validation layer\n", n_messages);
    }
    bool is_good = status == MSC_OK && report.n_unexpected == 0 && n_messages == 0 &&
                   report.n_in_scope >= options.at_least;
    finish(&report);
    return is_good ? 0 : 1;
}
