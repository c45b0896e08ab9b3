// Parts that are the same in every page: a style sheet, a script and the chart library. They are
// files of this folder and of the system, embedded at build time (cmake/msc_embed.cmake).
#ifndef MSC_REPORT_ASSETS_H
#define MSC_REPORT_ASSETS_H

#include <stddef.h>

struct msc_asset {
    const char *text;   // not NUL-terminated
    size_t n_bytes;     // 0: not in this build
    const char *sha256; // base64
};

extern const struct msc_asset msc_asset_style, msc_asset_script;
extern const struct msc_asset msc_asset_charts; // Chart.js

#endif
