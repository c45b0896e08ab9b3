// Outside libraries, and the versions of them that run. Each folder that uses some has a function like
// this one, which tells of them one by one.
#ifndef MSC_BASE_VERSIONS_H
#define MSC_BASE_VERSIONS_H

// Texts are borrowed until it returns.
typedef void (*msc_version_take)(void *payload, const char *name, const char *version);

void msc_base_versions(msc_version_take take, void *payload);

#endif
