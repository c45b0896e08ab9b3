// The calls of one dispatch: they differ in the offsets of their data and in a row of parameters.
// gl_WorkGroupID.z counts the workgroups along z of the first call, then of the next calls.
// BINDINGS is the number of bindings without the rows, ROW the number of parameters per row after
// the offsets.
//
// In the heads of shaders, a lane is an invocation: `lanes` is the number of invocations per
// workgroup (constant 0), per_lane the number of elements that each invocation computes. "repair"
// is explained in divide.glsl.
layout(binding = BINDINGS) readonly buffer Rows { uint rows[]; };

uint row_at;

// Finds the row of a call. Must be called first.
void find_call(uint call) {
    row_at = call * (BINDINGS + ROW);
}

// The offset of the call's block at a binding: in words, or in texels of the arena.
uint begin_of(uint binding) {
    return rows[row_at + binding];
}

uint word(uint i) {
    return rows[row_at + BINDINGS + i];
}

float number(uint i) {
    return uintBitsToFloat(word(i));
}
