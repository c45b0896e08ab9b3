// Tells which recurrent layers cpu_recurrent.c computes. The reference kernel computes all others.
#ifndef MSC_KERNELS_CPU_CPU_RECURRENT_H
#define MSC_KERNELS_CPU_CPU_RECURRENT_H

#include "kernels/cpu/cpu.h"

bool msc_cpu_recurrent_accepts(const struct msc_graph *g, const struct msc_joint *joint);

#endif
