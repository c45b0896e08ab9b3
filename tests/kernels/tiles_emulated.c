// The code of kernels/cpu/simd_tiles.c, compiled with tiles in plain C.
#define MSC_TILES_HEADER "tests/kernels/tiles_emulated.h"
#define msc_simd__tiles tiles_emulated
#include "kernels/cpu/simd_tiles.c"
