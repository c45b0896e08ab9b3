// Keeps standard output for results that a program reads: JSON, or lines that it waits for.
// Everything that libraries of environments and agents print goes to standard error.
//
//     MSC_TRY(msc_output_keep());
//     fputs(json, msc_output_file());
#ifndef MSC_CLI_OUTPUT_H
#define MSC_CLI_OUTPUT_H

#include "base/status.h"

#include <stdio.h>

// Call it before libraries are loaded. From then on, only msc_output_file and msc_output_descriptor
// write to standard output. Further calls do nothing.
enum msc_status msc_output_keep(void);
// Undoes msc_output_keep, for a process that starts this program again and loads no libraries.
void msc_output_give_back(void);
// Standard output for results, with or without a call of msc_output_keep.
FILE *msc_output_file(void);
int msc_output_descriptor(void);

#endif
