#include "cli/options.h"

#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/color.h"

#include <string.h>

#define COMMON(member) offsetof(struct msc_cli_common, member)

const struct msc_cli_option msc_cli_basic_options[] = {
    {.name = "json",
     .type = MSC_CLI_FLAG,
     .help = "print JSON in place of text",
     .details = "docs/json.md describes its members.",
     .offset = COMMON(json)},
    {.name = "quiet",
     .type = MSC_CLI_FLAG,
     .help = "print only errors on standard error",
     .details = "The file MSC_LOG is not affected.",
     .offset = COMMON(quiet)},
    {.name = "log-level",
     .argument = "LEVEL",
     .type = MSC_CLI_CHOICE,
     .names = MSC_LOG_LEVEL_NAMES,
     .help = "least severe messages to print: debug, info, warning or error (default: the "
             "configuration's)",
     .details =
         "The level applies to standard error and to MSC_LOG, and replaces the configuration's key "
         "verbose. runtime is another name for info, warn for warning and critical for error. The "
         "record does not depend on the level. With --quiet it applies only to MSC_LOG. Workers of "
         "--cluster print only errors.",
     .offset = COMMON(log_level)},
    {.name = "color",
     .argument = "WHEN",
     .type = MSC_CLI_CHOICE,
     .names = MSC_COLOR_NAMES,
     .help = "use colours: auto (on a terminal, the default), always or never",
     .details =
         "auto looks at standard output for reports and at standard error for messages, and obeys "
         "NO_COLOR and TERM. JSON, CSV and files never have colours.",
     .offset = COMMON(color)},
    {.name = "help",
     .letter = 'h',
     .type = MSC_CLI_FLAG,
     .help = "print the command's options and examples",
     .offset = COMMON(help)},
    {0},
};

const struct msc_cli_option msc_cli_model_options[] = {
    {.name = "device",
     .argument = "NAME",
     .type = MSC_CLI_TEXT,
     .names = "auto|cpu|vulkan",
     .help = "device to compute on: auto, cpu, vulkan, vulkan:N, vulkan:uuid=UUID or "
             "vulkan:pci=ADDRESS",
     .details =
         "mscgym devices lists them. The beginning of a UUID is enough; it may begin with GPU-, as "
         "NVIDIA's tools print it. An address looks like 0000:65:00.0.",
     .offset = COMMON(device)},
    {.name = "isa",
     .argument = "LEVEL",
     .type = MSC_CLI_TEXT,
     .names = MSC_CLI_ISA_NAMES,
     .help = "use no processor instructions above this level, such as avx2 (mscgym devices lists "
             "the levels)",
     .details =
         "The levels are sse41, avx, avx2, avx2_vnni, avx512_core, avx512_core_vnni, "
         "avx512_core_bf16 and avx512_core_amx, and on 64-bit Arm neon, neon_dotprod and "
         "neon_i8mm. Machines with different processors compute the same bits, under one numerics "
         "id, with a level that all of them have. A lower level is slower. A level that this "
         "machine lacks is refused.",
     .offset = COMMON(isa)},
    {.name = "threads",
     .argument = "N",
     .type = MSC_CLI_COUNT,
     .help = "use N threads (default: one per processor)",
     .details = "Results do not depend on the number of threads.",
     .offset = COMMON(threads)},
    {.name = "memory",
     .argument = "BYTES",
     .type = MSC_CLI_BYTES,
     .help = "use at most this much memory, such as 4G (default: half of the free memory, up to "
             "4G)",
     .details =
         "On a device with memory of its own the limit is for that memory. Less memory makes a "
         "search slower. A limit below the minimum that --dry-run prints is refused, and a trial "
         "that needs more than the limit fails. Results do not depend on the limit. mscgym run "
         "uses all free memory by default.",
     .offset = COMMON(memory_bytes)},
    {.name = "bind",
     .argument = "SYMBOL=N",
     .type = MSC_CLI_LIST,
     .help = "set a symbolic dimension, or an input that decides shapes or branches; may be "
             "repeated",
     .offset = COMMON(bind)},
    {.name = "operators",
     .argument = "FILE",
     .type = MSC_CLI_LIST,
     .values = MSC_CLI_FILES,
     .help = "compute operators that mscgym lacks by this plug-in: a library (.so), a Python file "
             "(.py) or a program; may be repeated",
     .details = "docs/operators.md describes plug-ins.",
     .offset = COMMON(operators)},
    {0},
};

static enum msc_status add_item(struct msc_cli_list *list, const char *text,
                                struct msc_arena *arena) {
    // Lists are short, so growing them one by one is cheap enough.
    const char **items = msc_arena_array(arena, list->n + 1, sizeof *items);
    MSC_TRY(MSC_ALLOCATED(items));
    if (list->n > 0) {
        memcpy(items, list->items, list->n * sizeof *items);
    }
    items[list->n++] = text;
    list->items = items;
    return MSC_OK;
}

static enum msc_status fail_option_value(const struct msc_cli_option *o, const char *text,
                                         const char *expected) {
    return MSC_FAIL(MSC_E_INVALID, "%s%s is \"%s\", expected %s", o->is_positional ? "" : "--",
                    o->name, text, expected);
}

static enum msc_status fail_choice(const struct msc_cli_option *o, const char *text) {
    struct msc_str names = {0};
    for (const char *at = o->names; *at; at += strcspn(at, "|")) {
        at += *at == '|';
        msc_str_append(&names, at == o->names ? "one of " : ", ");
        msc_str_append_n(&names, at, strcspn(at, "|"));
    }
    enum msc_status status = fail_option_value(o, text, msc_str_text(&names));
    msc_str_finish(&names);
    return status;
}

static enum msc_status store_choice(int64_t *out, const struct msc_cli_option *o,
                                    const char *text) {
    size_t length = strlen(text);
    int64_t i = 0;
    for (const char *at = o->names; *at; at += strcspn(at, "|")) {
        at += *at == '|';
        if (strcspn(at, "|") == length && strncmp(at, text, length) == 0) {
            *out = i;
            return MSC_OK;
        }
        i++;
    }
    return fail_choice(o, text);
}

static enum msc_status store_option(void *values, const struct msc_cli_option *o, const char *text,
                                    struct msc_arena *arena) {
    void *member = (char *)values + o->offset;
    switch (o->type) {
    case MSC_CLI_FLAG:
        *(bool *)member = true;
        return MSC_OK;
    case MSC_CLI_TEXT:
        *(const char **)member = text;
        return text[0] ? MSC_OK : fail_option_value(o, text, "a string that is not empty");
    case MSC_CLI_COUNT:
        return msc_parse_i64(member, text) && *(int64_t *)member >= 0
                   ? MSC_OK
                   : fail_option_value(o, text, "a whole number of 0 or more");
    case MSC_CLI_DURATION:
        return msc_parse_duration(member, text) && *(double *)member > 0
                   ? MSC_OK
                   : fail_option_value(o, text, "a time such as 8h, 90m, 1h30m or 45s");
    case MSC_CLI_BYTES:
        return msc_parse_bytes(member, text) && *(uint64_t *)member > 0
                   ? MSC_OK
                   : fail_option_value(o, text, "bytes such as 512M or 4G");
    case MSC_CLI_CHOICE:
        return store_choice(member, o, text);
    case MSC_CLI_LIST:
        return add_item(member, text, arena);
    }
    return MSC_FAIL(MSC_E_INVALID, "--%s has no known type", o->name);
}

// ---- Finding an option ------------------------------------------------------------------------

static const struct msc_cli_option *find_option(const struct msc_cli_option *const tables[],
                                                const char *name, size_t length) {
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            if (!o->is_positional && strncmp(o->name, name, length) == 0 &&
                o->name[length] == '\0') {
                return o;
            }
        }
    }
    return NULL;
}

static const struct msc_cli_option *find_letter(const struct msc_cli_option *const tables[],
                                                char letter) {
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            if (o->letter == letter) {
                return o;
            }
        }
    }
    return NULL;
}

static const struct msc_cli_option *positional(const struct msc_cli_option *const tables[],
                                               size_t n) {
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            if (o->is_positional && n-- == 0) {
                return o;
            }
        }
    }
    return NULL;
}

#define MAX_NAMES 64

static enum msc_status fail_unknown_option(const struct msc_cli_option *const tables[],
                                           const char *argument) {
    const char *names[MAX_NAMES];
    size_t n = 0;
    const char *word = argument + strspn(argument, "-");
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name && n < MAX_NAMES; o++) {
            if (!o->is_positional) {
                names[n++] = o->name;
            }
        }
    }
    const char *near = msc_suggest(word, names, n);
    return MSC_FAIL(MSC_E_INVALID, "unknown option %s%s%s%s", argument,
                    near ? ", did you mean --" : ": --help lists the options", near ? near : "",
                    near ? "?" : "");
}

// ---- Reading ----------------------------------------------------------------------------------

struct parsing {
    void *values;
    const struct msc_cli_option *const *tables;
    int argc;
    char *const *argv;
    int next;
    size_t n_positional;
    struct msc_arena *arena;
};

static enum msc_status read_positional(struct parsing *p, const char *text) {
    const struct msc_cli_option *o = positional(p->tables, p->n_positional);
    const struct msc_cli_option *last =
        p->n_positional > 0 ? positional(p->tables, p->n_positional - 1) : NULL;
    if (!o && last && last->type == MSC_CLI_LIST) {
        o = last;
    } else if (!o) {
        return MSC_FAIL(MSC_E_INVALID, "unexpected argument \"%s\"", text);
    } else {
        p->n_positional++;
    }
    return store_option(p->values, o, text, p->arena);
}

static enum msc_status read_option(struct parsing *p, const char *argument) {
    bool is_long = argument[1] == '-';
    const char *name = argument + (is_long ? 2 : 1);
    size_t length = is_long ? strcspn(name, "=") : 1;
    const struct msc_cli_option *o =
        is_long ? find_option(p->tables, name, length) : find_letter(p->tables, name[0]);
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (!o || (!is_long && name[1])) {
        return fail_unknown_option(p->tables, argument);
    }
    if (o->type == MSC_CLI_FLAG) {
        return value ? MSC_FAIL(MSC_E_INVALID, "--%s takes no value", o->name)
                     : store_option(p->values, o, "", p->arena);
    }
    if (!value && p->next >= p->argc) {
        return MSC_FAIL(MSC_E_INVALID, "--%s needs a value: --%s %s", o->name, o->name,
                        o->argument);
    }
    return store_option(p->values, o, value ? value : p->argv[p->next++], p->arena);
}

static void set_absent(void *values, const struct msc_cli_option *const tables[]) {
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            if (o->type == MSC_CLI_COUNT || o->type == MSC_CLI_CHOICE) {
                *(int64_t *)((char *)values + o->offset) = -1;
            }
        }
    }
}

static bool is_given(const void *values, const struct msc_cli_option *o) {
    const void *member = (const char *)values + o->offset;
    switch (o->type) {
    case MSC_CLI_FLAG:
        return *(const bool *)member;
    case MSC_CLI_TEXT:
        return *(const char *const *)member != NULL;
    case MSC_CLI_COUNT:
    case MSC_CLI_CHOICE:
        return *(const int64_t *)member >= 0;
    case MSC_CLI_DURATION:
        return *(const double *)member > 0;
    case MSC_CLI_BYTES:
        return *(const uint64_t *)member > 0;
    case MSC_CLI_LIST:
        return ((const struct msc_cli_list *)member)->n > 0;
    }
    return false;
}

// An option without the option that it needs would have no effect, so this is an error.
static enum msc_status check_needs(const void *values,
                                   const struct msc_cli_option *const tables[]) {
    for (size_t t = 0; tables[t]; t++) {
        for (const struct msc_cli_option *o = tables[t]; o->name; o++) {
            const struct msc_cli_option *other =
                o->needs ? find_option(tables, o->needs, strlen(o->needs)) : NULL;
            if (other && is_given(values, o) && !is_given(values, other)) {
                return MSC_FAIL(MSC_E_INVALID, "--%s needs --%s", o->name, o->needs);
            }
        }
    }
    return MSC_OK;
}

// Arguments appear in records and pages, which must be UTF-8.
static enum msc_status check_arguments(int argc, char *const argv[]) {
    for (int i = 1; i < argc; i++) {
        size_t length = strlen(argv[i]);
        size_t good = msc_utf8_length(argv[i], length);
        if (good < length) {
            return MSC_FAIL(MSC_E_INVALID,
                            "argument %d, \"%s\": byte %zu is not UTF-8; rename the file, or link "
                            "to it by another name",
                            i, argv[i], good);
        }
    }
    return MSC_OK;
}

enum msc_status msc_cli_parse(void *values, const struct msc_cli_option *const tables[], int argc,
                              char *const argv[], struct msc_arena *arena) {
    struct parsing p = {
        .values = values, .tables = tables, .argc = argc, .argv = argv, .next = 1, .arena = arena};
    bool only_positional = false;
    set_absent(values, tables);
    MSC_TRY(check_arguments(argc, argv));
    while (p.next < argc) {
        const char *argument = argv[p.next++];
        if (!only_positional && strcmp(argument, "--") == 0) {
            only_positional = true;
        } else if (!only_positional && argument[0] == '-' && argument[1]) {
            MSC_TRY(read_option(&p, argument));
        } else {
            MSC_TRY(read_positional(&p, argument));
        }
    }
    const struct msc_cli_option *missing = positional(tables, p.n_positional);
    if (missing && missing->is_required && !((const struct msc_cli_common *)values)->help) {
        return MSC_FAIL(MSC_E_INVALID, "%s is missing: %s", missing->name, missing->help);
    }
    return check_needs(values, tables);
}

enum msc_status msc_cli_bindings(const struct msc_binding **out, size_t *n,
                                 const struct msc_cli_list *list, struct msc_arena *arena) {
    struct msc_binding *bindings = msc_arena_array(arena, list->n + 1, sizeof *bindings);
    MSC_TRY(MSC_ALLOCATED(bindings));
    for (size_t i = 0; i < list->n; i++) {
        const char *equals = strrchr(list->items[i], '=');
        if (!equals || equals == list->items[i] || !msc_parse_i64(&bindings[i].value, equals + 1) ||
            bindings[i].value < 0) {
            return MSC_FAIL(MSC_E_INVALID, "--bind is \"%s\", expected SYMBOL=N such as N=8",
                            list->items[i]);
        }
        bindings[i].symbol =
            msc_arena_strndup(arena, list->items[i], (size_t)(equals - list->items[i]));
        MSC_TRY(MSC_ALLOCATED(bindings[i].symbol));
    }
    *out = bindings;
    *n = list->n;
    return MSC_OK;
}
