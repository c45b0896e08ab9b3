// Marks the public interface for programs and plug-ins. The installed headers
// (cmake/msc_headers.cmake) put their contents between MSC_PUBLIC_BEGIN and MSC_PUBLIC_END. All
// other functions and variables have hidden visibility, so nobody outside the library can depend on
// them.
#ifndef MSC_BASE_PUBLIC_H
#define MSC_BASE_PUBLIC_H

#if defined(__GNUC__)
#define MSC_PUBLIC_PUSH _Pragma("GCC visibility push(default)")
#define MSC_PUBLIC_POP _Pragma("GCC visibility pop")
#else
#define MSC_PUBLIC_PUSH
#define MSC_PUBLIC_POP
#endif

#ifdef __cplusplus
#define MSC_PUBLIC_BEGIN                                                                           \
    extern "C" {                                                                                   \
    MSC_PUBLIC_PUSH
#define MSC_PUBLIC_END                                                                             \
    MSC_PUBLIC_POP                                                                                 \
    }
#else
#define MSC_PUBLIC_BEGIN MSC_PUBLIC_PUSH
#define MSC_PUBLIC_END MSC_PUBLIC_POP
#endif

#endif
