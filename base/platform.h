// What differs between compilers and machines; the only place for such #ifdefs outside
// kernels/vulkan/.
#ifndef MSC_BASE_PLATFORM_H
#define MSC_BASE_PLATFORM_H

// Sanitizers intercept calls before the resolvers of function clones can run.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MSC_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MSC_SANITIZED 1
#endif
#endif

// A function so marked is compiled once for each instruction set and picked when the program
// loads. All clones give the same bits: the build forbids contraction of a*b+c. Only for static
// functions: others would be seen outside of the library, whatever their visibility. MSC_SIMD_LEVEL
// names the set that is picked.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(MSC_SANITIZED)
#define MSC_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#define MSC_SIMD_LEVEL                                                                             \
    (__builtin_cpu_supports("avx512f") ? "avx512f"                                                 \
     : __builtin_cpu_supports("avx2")  ? "avx2"                                                    \
                                       : "baseline")
#else
#define MSC_SIMD
#define MSC_SIMD_LEVEL "baseline"
#endif

// 1 if the instruction sets that oneDNN's header names exist on this processor.
#ifdef __x86_64__
#define MSC_HAS_ISA_LEVELS 1
#else
#define MSC_HAS_ISA_LEVELS 0
#endif

// Do vectors' minimum and maximum raise FE_INVALID for NaN, which they take for their other operand?
#ifdef __x86_64__
#define MSC_LIMITS_RAISE_INVALID 1
#else
#define MSC_LIMITS_RAISE_INVALID 0
#endif

// A static function that is inlined whatever its size: for arguments that the compiler shall know.
#ifdef __GNUC__
#define MSC_INLINE static inline __attribute__((always_inline))
#else
#define MSC_INLINE static inline
#endif

#endif
