// Differences between compilers and machines. Only this file and kernels/vulkan/ have such
// #ifdefs.
#ifndef MSC_BASE_PLATFORM_H
#define MSC_BASE_PLATFORM_H

// Under sanitizers MSC_SIMD makes no function clones, because sanitizers intercept calls before the
// resolvers of clones can run.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MSC_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MSC_SANITIZED 1
#endif
#endif

// MSC_SIMD marks a function that is compiled once per instruction set. The loader of the program
// chooses the variant. All variants give the same bits, because the build forbids contraction of
// a*b+c. Use MSC_SIMD only for static functions: the library would export others, whatever their
// visibility. MSC_SIMD_LEVEL names the chosen instruction set.
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

// 1 if oneDNN's header lists instruction sets for this processor architecture, else 0.
#ifdef __x86_64__
#define MSC_HAS_ISA_LEVELS 1
#else
#define MSC_HAS_ISA_LEVELS 0
#endif

// 1 if the vector minimum and maximum raise FE_INVALID for NaN and return the other operand.
#ifdef __x86_64__
#define MSC_LIMITS_RAISE_INVALID 1
#else
#define MSC_LIMITS_RAISE_INVALID 0
#endif

// A static function that is always inlined, so that the compiler can propagate constant
// arguments.
#ifdef __GNUC__
#define MSC_INLINE static inline __attribute__((always_inline))
#else
#define MSC_INLINE static inline
#endif

#endif
