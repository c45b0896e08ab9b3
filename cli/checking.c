#include "cli/checking.h"

#include "agents/agent.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/searching.h"
#include "env/api/library.h"
#include "checks/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S 300.0

const struct msc_cli_option msc_cli_check_options[] = {
    {.name = "check",
     .type = MSC_CLI_FLAG,
     .help = "check the contract, rule by rule",
     .details =
         "Each rule runs in a process of its own. NAME is tested with every parameter at its "
         "default. It may also be a program, in quotes with its arguments, or a configuration, "
         "whose first search is tested with its model. Exit code 1 if a rule is broken.",
     .offset = offsetof(struct msc_cli_plugins, check)},
    {.name = "limit",
     .argument = "TIME",
     .type = MSC_CLI_DURATION,
     .help = "with --check: time for each rule (default: 5m)",
     .offset = offsetof(struct msc_cli_plugins, limit_s)},
    {0},
};

// `try` runs in a child process for each rule and makes the agent or environment there.
struct checking {
    const struct msc_cli_call *call;
    const struct msc_cli_plugins *values;
    const struct msc_check_rule *rules;
    enum msc_status (*try)(struct checking *c, const struct msc_check_rule *rule);
};

struct verdict {
    const struct msc_check_rule *rule;
    bool is_kept;
    char message[1024]; // says how the rule is broken
};

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), n = strlen(end);
    return length >= n && strcmp(text + length - n, end) == 0;
}

// Text with blanks is a program with arguments, unless it is the path of a file.
static bool is_command(const char *text) {
    return strpbrk(text, " \t") && access(text, F_OK) != 0;
}

static bool is_config(const char *name) {
    return msc_config_is_path(name) && !is_command(name);
}

static bool is_library(const char *name) {
    return ends_with(name, ".so") && !is_command(name);
}

// ---- A process for each rule ------------------------------------------------------------------

static void try_in_child(struct checking *c, const struct msc_check_rule *rule, int out) {
    double limit_s = c->values->limit_s > 0 ? c->values->limit_s : LIMIT_S;
    alarm(limit_s < 1 ? 1 : (unsigned)limit_s);
    enum msc_status status = c->try(c, rule);
    if (status != MSC_OK) {
        struct verdict room;
        int n = snprintf(room.message, sizeof room.message, "%s", msc_status_message());
        // Does not block, because the message fits in the pipe.
        (void)!write(out, room.message, n > 0 ? strlen(room.message) : 0);
    }
    _exit(status == MSC_OK ? 0 : 1);
}

// Called after the child's end. Does not wait for the end of the pipe, because programs that the
// child started may hold it open.
static void read_message(struct verdict *verdict, int in) {
    ssize_t n = 0;
    fcntl(in, F_SETFL, O_NONBLOCK);
    n = read(in, verdict->message, sizeof verdict->message - 1);
    verdict->message[n > 0 ? n : 0] = '\0';
}

static void judge(struct verdict *verdict, int state, double limit_s) {
    size_t size = sizeof verdict->message;
    verdict->is_kept = WIFEXITED(state) && WEXITSTATUS(state) == 0;
    if (WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM) {
        snprintf(verdict->message, size, "not finished after %g s; --limit allows more", limit_s);
    } else if (WIFSIGNALED(state)) {
        snprintf(verdict->message, size, "it crashed: %s", strsignal(WTERMSIG(state)));
    } else if (!verdict->is_kept && verdict->message[0] == '\0') {
        snprintf(verdict->message, size, "it ended the program, with exit code %d",
                 WEXITSTATUS(state));
    }
}

static enum msc_status try_rule(struct verdict *verdict, struct checking *c,
                                const struct msc_check_rule *rule) {
    int ends[2];
    int state = 0;
    *verdict = (struct verdict){.rule = rule};
    fflush(stdout);
    if (pipe(ends) != 0) {
        return MSC_FAIL(MSC_E_IO, "cannot create a pipe for the check: %s", strerror(errno));
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        try_in_child(c, rule, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return MSC_FAIL(MSC_E_IO, "cannot start a process for the check: %s", strerror(errno));
    }
    pid_t ended = -1;
    do {
        ended = waitpid(child, &state, 0);
    } while (ended < 0 && errno == EINTR);
    read_message(verdict, ends[0]);
    close(ends[0]);
    if (ended < 0) {
        return MSC_FAIL(MSC_E_IO, "lost the process of the check: %s", strerror(errno));
    }
    judge(verdict, state, c->values->limit_s > 0 ? c->values->limit_s : LIMIT_S);
    return MSC_OK;
}

// ---- Verdicts ---------------------------------------------------------------------------------

static enum msc_status print_verdict(const struct verdict *v) {
    struct msc_str text = {0};
    msc_str_printf(&text, "%-6s  %-10s  %s\n", v->is_kept ? "ok" : "FAILED", v->rule->name,
                   v->rule->says);
    if (!v->is_kept) {
        msc_str_printf(&text, "        %-10s  %s\n", "", v->message);
    }
    enum msc_status status = msc_cli_print_str(&text);
    msc_str_finish(&text);
    return status;
}

static enum msc_status add_verdict(cJSON *list, const struct verdict *v) {
    cJSON *object = cJSON_CreateObject();
    MSC_TRY(msc_json_push(list, object));
    MSC_TRY(msc_json_add_text(object, "rule", v->rule->name));
    MSC_TRY(msc_json_add_text(object, "says", v->rule->says));
    MSC_TRY(msc_json_add_bool(object, "kept", v->is_kept));
    return v->is_kept ? MSC_OK : msc_json_add_text(object, "message", v->message);
}

static enum msc_status try_all(bool *are_kept, struct checking *c, cJSON *list) {
    for (const struct msc_check_rule *rule = c->rules; rule->name; rule++) {
        struct verdict verdict;
        MSC_TRY(try_rule(&verdict, c, rule));
        *are_kept = *are_kept && verdict.is_kept;
        MSC_TRY(list ? add_verdict(list, &verdict) : print_verdict(&verdict));
        if (!verdict.is_kept && rule == c->rules) {
            break; // without the first rule, the others cannot start
        }
    }
    return MSC_OK;
}

static int run_checks(struct checking *c) {
    bool are_kept = true;
    cJSON *list = c->values->common.json ? cJSON_CreateArray() : NULL;
    enum msc_status status = MSC_OK;
    if (c->values->common.json && !list) {
        status = MSC_FAIL(MSC_E_NOMEM, "out of memory");
    }
    if (status == MSC_OK) {
        status = try_all(&are_kept, c, list);
    }
    if (status == MSC_OK && list) {
        status = msc_cli_print_json(list);
    }
    cJSON_Delete(list);
    return status != MSC_OK ? msc_cli_fail(c->call, status)
           : are_kept       ? MSC_CLI_OK
                            : MSC_CLI_FAILED;
}

// ---- Agents -----------------------------------------------------------------------------------

// Splits the text at blanks into words, and adds "type": "process" and "command": [words].
static enum msc_status add_command(cJSON *object, const char *text) {
    cJSON *words = cJSON_CreateArray();
    MSC_TRY(msc_json_add_text(object, "type", "process"));
    MSC_TRY(msc_json_add(object, "command", words));
    while (*text != '\0') {
        char word[1024];
        size_t length = strcspn(text, " \t");
        if (length >= sizeof word) {
            return MSC_FAIL(MSC_E_INVALID, "--check: a word of the command is too long");
        }
        memcpy(word, text, length);
        word[length] = '\0';
        MSC_TRY(length > 0 ? msc_json_push(words, cJSON_CreateString(word)) : MSC_OK);
        text += length + (text[length] != '\0');
    }
    return MSC_OK;
}

static enum msc_status make_agent(cJSON *object, const char *name) {
    if (is_library(name)) {
        MSC_TRY(msc_json_add_text(object, "type", "library"));
        return msc_json_add_text(object, "path", name);
    }
    return msc_agent_find(name) ? msc_json_add_text(object, "type", name)
                                : add_command(object, name);
}

static enum msc_status try_agent_of_config(struct checking *c, const struct msc_check_rule *rule) {
    struct msc_config *config = NULL;
    MSC_TRY(msc_config_load(&config, c->values->name, MSC_CONFIG_CODE_ALLOWED));
    const struct msc_check_agent subject = {
        .config = config->n_entries > 0 ? config->entries[0].agent : NULL,
        .folder = config->n_entries > 0 ? config->entries[0].folder : NULL};
    enum msc_status status =
        subject.config
            ? rule->check(&subject)
            : MSC_FAIL(MSC_E_INVALID, "%s: the configuration has no search", c->values->name);
    msc_config_destroy(config);
    return status;
}

static enum msc_status try_agent(struct checking *c, const struct msc_check_rule *rule) {
    if (is_config(c->values->name)) {
        return try_agent_of_config(c, rule);
    }
    cJSON *object = cJSON_CreateObject();
    const struct msc_check_agent subject = {.config = object};
    enum msc_status status =
        object ? make_agent(object, c->values->name) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = rule->check(&subject);
    }
    cJSON_Delete(object);
    return status;
}

int msc_cli_check_agent(const struct msc_cli_call *call, const struct msc_cli_plugins *values) {
    struct checking c = {
        .call = call, .values = values, .rules = msc_check_agent_rules, .try = try_agent};
    return run_checks(&c);
}

// ---- Environments -----------------------------------------------------------------------------

// The environments that a check opens from a configuration. Each has its own processor, because
// each needs the model.
struct of_config {
    const char *path;
    struct msc_processor_options options;
    struct msc_processor *opened[4];
};

static enum msc_status open_of_config(void *payload, struct msc_env **out) {
    struct of_config *of = payload;
    size_t i = 0;
    while (i < 3 && of->opened[i]) {
        i++;
    }
    MSC_TRY(msc_processor_open(&of->opened[i], of->path, &of->options));
    enum msc_status status = msc_processor_prepare(of->opened[i]);
    if (status != MSC_OK) {
        msc_processor_close(of->opened[i]);
        of->opened[i] = NULL;
        return status;
    }
    *out = msc_processor_env(of->opened[i]);
    return MSC_OK;
}

static void close_of_config(void *payload, struct msc_env *env) {
    struct of_config *of = payload;
    for (size_t i = 0; i < 4; i++) {
        if (of->opened[i] && msc_processor_env(of->opened[i]) == env) {
            msc_processor_close(of->opened[i]);
            of->opened[i] = NULL;
        }
    }
}

// An environment without a model, with every parameter at its default, except the command if the
// environment is a program.
struct by_name {
    const struct msc_env_def *def;
    const cJSON *config; // NULL: none
};

static enum msc_status open_by_name(void *payload, struct msc_env **out) {
    const struct by_name *by = payload;
    const struct msc_env_host host = {.abi = MSC_ENV_ABI, .n_threads = 1};
    enum msc_status status = msc_env_create(out, by->def, by->config, &host);
    return status == MSC_OK || by->config
               ? status
               : msc_status_prefix(status, "without a configuration, which --check also takes");
}

static void close_by_name(void *payload, struct msc_env *env) {
    (void)payload;
    msc_env_destroy(env);
}

// True for a command with blanks, and for the path of a file that is not a library.
static bool is_program(const char *name) {
    return !msc_env_find(name) && !is_library(name) &&
           (strpbrk(name, " \t") || msc_library_is_path(name));
}

static enum msc_status try_env_program(struct checking *c, const struct msc_check_rule *rule) {
    cJSON *object = cJSON_CreateObject();
    struct by_name by = {.def = msc_env_find("process"), .config = object};
    const struct msc_check_env subject = {
        .open = open_by_name, .close = close_by_name, .payload = &by};
    enum msc_status status =
        object ? add_command(object, c->values->name) : MSC_FAIL(MSC_E_NOMEM, "out of memory");
    if (status == MSC_OK) {
        status = rule->check(&subject);
    }
    cJSON_Delete(object);
    return status;
}

static enum msc_status try_env(struct checking *c, const struct msc_check_rule *rule) {
    const char *name = c->values->name;
    struct msc_env_library *library = NULL;
    struct by_name by = {.def = NULL};
    struct of_config of = {.path = name};
    struct msc_check_env subject = {
        .open = open_of_config, .close = close_of_config, .payload = &of};
    if (is_config(name)) {
        MSC_TRY(msc_cli_fill_options(&of.options, c->call, &c->values->common));
        of.options.log = NULL;
        return rule->check(&subject);
    }
    if (is_program(name)) {
        return try_env_program(c, rule);
    }
    MSC_TRY(msc_env_select(&by.def, &library, name, NULL));
    subject = (struct msc_check_env){.open = open_by_name, .close = close_by_name, .payload = &by};
    enum msc_status status = rule->check(&subject);
    msc_env_library_close(library);
    return status;
}

int msc_cli_check_env(const struct msc_cli_call *call, const struct msc_cli_plugins *values) {
    struct checking c = {
        .call = call, .values = values, .rules = msc_check_env_rules, .try = try_env};
    return run_checks(&c);
}
