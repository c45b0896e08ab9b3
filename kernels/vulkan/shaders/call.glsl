// The calls of one dispatch: they differ in where their data begins and in a row of parameters.
// gl_WorkGroupID.z counts what one call needs of z, then calls. BINDINGS is the number of the
// shader's own bindings, ROW that of the words of a row behind the beginnings.
layout(binding = BINDINGS) readonly buffer Rows { uint rows[]; };

uint row_at;

// To be called first.
void find_call(uint call) {
    row_at = call * (BINDINGS + ROW);
}

// Where the call's block begins: in words, or in texels of the arena.
uint begin_of(uint binding) {
    return rows[row_at + binding];
}

uint word(uint i) {
    return rows[row_at + BINDINGS + i];
}

float number(uint i) {
    return uintBitsToFloat(word(i));
}
