// The faults of plugin_faults.c and the expected messages, for environments and agents alike.
#ifndef MSC_TESTS_PLUGIN_FAULTS_H
#define MSC_TESTS_PLUGIN_FAULTS_H

static const struct {
    const char *fault, *message;
} plugin_faults[] = {
    {"null", "_plugin is a null pointer"},
    {"no pointer", "_plugin points to no definition"},
    {"abi", "ABI 77, expected"},
    {"no abi", "ABI 0, expected "},
    {"later abi", "ABI 2, expected "},
    {"no name", "its definition has no name"},
    {"empty name", "the name of its definition is empty"},
    {"wild name", "the name of its definition is no readable text"},
    {"long name", "the name of its definition is longer than"},
    {"escape", "the name of its definition has a character that does not print"},
    {"no summary", "its definition has no summary"},
    {"no init", "its definition has no init"},
    {"wild init", "the init of its definition is no function"},
    {"wild finish", "the finish of its definition is no function"},
    {"no params", "its definition has no params"},
    {"wild params", "the table of its parameters cannot be read"},
    {"endless params", "the table of its parameters has no end"},
    {"garbage behind params", "the name of parameter 2 is no readable text"},
    {"no help", "parameter count has no help"},
    {"type", "parameter count has type 99"},
    {"outside", "parameter count lies outside of the state"},
    {"no names", "parameter mode has no names"},
    {"no default", "parameter mode has no default"},
    {"other default", "the default of parameter mode is \"neither\", none of one|two"},
};

#endif
