// Sums of four products of signed bytes: by the instruction of the device (DOT), or one by one.
#if defined(DOT)
#extension GL_EXT_spirv_intrinsics : require
// OpSDotKHR over 32-bit words that hold four bytes (format 0).
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4450)
int dot_bytes(uint a, uint b, spirv_literal int format);

int dot_one(uint a, uint b) {
    return dot_bytes(a, b, 0);
}
#else
int dot_one(uint a, uint b) {
    int sum = 0;
    for (int k = 0; k < 32; k += 8) {
        sum += bitfieldExtract(int(a), k, 8) * bitfieldExtract(int(b), k, 8);
    }
    return sum;
}
#endif

ivec4 dot_of(uint a, uvec4 b) {
    return ivec4(dot_one(a, b.x), dot_one(a, b.y), dot_one(a, b.z), dot_one(a, b.w));
}
