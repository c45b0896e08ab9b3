// Versions of the outside libraries that this process runs with. Each folder that uses such
// libraries has a function like msc_base_versions, which reports each library to a callback.
#ifndef MSC_BASE_VERSIONS_H
#define MSC_BASE_VERSIONS_H

// Both strings are borrowed until the callback returns.
typedef void (*msc_version_take)(void *payload, const char *name, const char *version);

void msc_base_versions(msc_version_take take, void *payload);

#endif
