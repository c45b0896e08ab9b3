// The faults of plugin_faults.c and the expected messages, for environments and agents alike.
#ifndef MSC_TESTS_PLUGIN_FAULTS_H
#define MSC_TESTS_PLUGIN_FAULTS_H

static const struct {
    const char *fault, *message;
} plugin_faults[] = {
    {"null", "_plugin is NULL"},
    {"no pointer", "_plugin does not point to a definition"},
    {"abi", "ABI 77, expected"},
    {"no abi", "ABI 0, expected "},
    {"later abi", "ABI 3, expected "},
    {"no name", "the definition has no name"},
    {"empty name", "the name of the definition is empty"},
    {"wild name", "the name of the definition is not a readable string"},
    {"long name", "the name of the definition is longer than"},
    {"escape", "the name of the definition contains a control character"},
    {"no summary", "the definition has no summary"},
    {"no init", "the definition has no init"},
    {"wild init", "member init of the definition is not a function"},
    {"wild finish", "member finish of the definition is not a function"},
    {"no params", "the definition has no params"},
    {"wild params", "the parameter table cannot be read"},
    {"endless params", "the parameter table does not end"},
    {"garbage behind params", "the name of parameter 2 is not a readable string"},
    {"no help", "parameter count has no help"},
    {"type", "parameter count has the unknown type 99"},
    {"outside", "parameter count does not fit into the state"},
    {"no names", "parameter mode has no names"},
    {"no default", "parameter mode has no default"},
    {"other default", "the default of parameter mode is \"neither\", expected one of one|two"},
};

#endif
