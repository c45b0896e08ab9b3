// Standard output, kept for what a program reads: JSON, or lines that it waits for. A library that is an
// environment or an agent, or whatever those call, may print; that goes to standard error then.
//
//     MSC_TRY(msc_output_keep());
//     fputs(json, msc_output_file());
#ifndef MSC_CLI_OUTPUT_H
#define MSC_CLI_OUTPUT_H

#include "base/status.h"

#include <stdio.h>

// Before libraries are loaded. From then on whatever does not write to what follows writes to standard
// error. Called again it does nothing.
enum msc_status msc_output_keep(void);
// Undoes it, for a process that starts this program anew and loads nothing itself.
void msc_output_give_back(void);
// Where results go: standard output, as long as it is not kept.
FILE *msc_output_file(void);
int msc_output_descriptor(void);

#endif
