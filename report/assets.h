// What every page holds beside its data: a style, a script, the library of charts. Bytes of files of this
// folder and of the system, put in at build time (cmake/msc_embed.cmake).
#ifndef MSC_REPORT_ASSETS_H
#define MSC_REPORT_ASSETS_H

#include <stddef.h>

struct msc_asset {
    const char *text;   // not ended by a NUL
    size_t n_bytes;     // 0: this build does not have it
    const char *sha256; // base64
};

extern const struct msc_asset msc_asset_style, msc_asset_script;
extern const struct msc_asset msc_asset_charts; // Chart.js

#endif
