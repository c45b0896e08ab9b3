# Options of the build, and the interface target `msc_options` that carries every compiler flag.

set(MSC_SANITIZE "" CACHE STRING "Sanitizer: empty, address (with undefined) or thread")
set_property(CACHE MSC_SANITIZE PROPERTY STRINGS "" address thread)
set(MSC_VULKAN AUTO CACHE STRING "Vulkan backend: AUTO (when found), ON or OFF")
set_property(CACHE MSC_VULKAN PROPERTY STRINGS AUTO ON OFF)
option(MSC_ONEDNN "Use oneDNN in the cpu backend" ON)
set(MSC_REPORT AUTO CACHE STRING "Charts on pages: AUTO (when Chart.js is found), ON or OFF")
set_property(CACHE MSC_REPORT PROPERTY STRINGS AUTO ON OFF)
set(MSC_SERVE AUTO CACHE STRING "Serve pages by libmicrohttpd: AUTO (when found), ON or OFF")
set_property(CACHE MSC_SERVE PROPERTY STRINGS AUTO ON OFF)
set(MSC_TOML AUTO CACHE STRING "Read TOML by toml++: AUTO (when found, with a C++ compiler), ON or OFF")
set_property(CACHE MSC_TOML PROPERTY STRINGS AUTO ON OFF)
option(MSC_TESTS "Build the tests" ON)
set(MSC_SHADER_CACHE "${PROJECT_BINARY_DIR}/shader-cache" CACHE PATH "Where tests keep shaders that Mesa has compiled")
option(MSC_BENCH "Build the benchmarks" ON)
option(MSC_FUZZ "Build the fuzzers, and everything with their sanitizers (clang alone)" OFF)
option(MSC_WERROR "Treat warnings as errors" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# Releases keep asserts: after hours of search, a wrong result costs more than a restart.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(MSC_IS_X86 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    set(MSC_IS_X86 ON)
endif()
set(MSC_IS_ARM64 OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    set(MSC_IS_ARM64 ON)
endif()

find_package(OpenMP REQUIRED COMPONENTS C)
find_package(Threads REQUIRED)

# msc_flags has every flag; msc_options adds the headers of the tree.
add_library(msc_flags INTERFACE)
add_library(msc_options INTERFACE)
target_link_libraries(msc_options INTERFACE msc_flags)
target_include_directories(msc_options INTERFACE "${PROJECT_SOURCE_DIR}")
# X/Open 7 includes POSIX.1-2008.
target_compile_definitions(msc_flags INTERFACE _XOPEN_SOURCE=700)
# The first flag makes a*b+c two roundings on every machine. The others change no result, because the code reads
# neither errno after a maths function nor floating-point exception flags.
target_compile_options(msc_flags INTERFACE
    -ffp-contract=off -fno-math-errno -fno-trapping-math
    -Wall -Wextra -Wpedantic -Wshadow
    "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
target_link_libraries(msc_flags INTERFACE OpenMP::OpenMP_C Threads::Threads m)
if(MSC_WERROR)
    target_compile_options(msc_flags INTERFACE -Werror)
endif()

# Environment of a test that uses no Vulkan device, so that leaks of drivers are not reported for it.
set(MSC_NO_DEVICE_ENV "VK_DRIVER_FILES=/dev/null;VK_ICD_FILENAMES=/dev/null")
# Environment that every test needs under the chosen sanitizer.
set(MSC_SANITIZE_ENV "")
set(MSC_TEST_TIMEOUT 900) # seconds
if(CMAKE_CROSSCOMPILING_EMULATOR)
    set(MSC_TEST_TIMEOUT 7200)
endif()
if(MSC_SANITIZE STREQUAL "address")
    set(MSC_SANITIZE_FLAGS -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    # Damaged files may request huge sizes, for which malloc returns NULL, as without the sanitizer.
    set(MSC_SANITIZE_ENV "ASAN_OPTIONS=allocator_may_return_null=1;UBSAN_OPTIONS=print_stacktrace=1")
elseif(MSC_SANITIZE STREQUAL "thread")
    set(MSC_TEST_TIMEOUT 3600)
    set(MSC_SANITIZE_FLAGS -fsanitize=thread -fno-omit-frame-pointer)
    # The distribution's OpenMP runtime is not instrumented, so its locks look like races.
    set(MSC_SANITIZE_ENV "TSAN_OPTIONS=ignore_noninstrumented_modules=1:allocator_may_return_null=1")
elseif(NOT MSC_SANITIZE STREQUAL "")
    message(FATAL_ERROR "MSC_SANITIZE is '${MSC_SANITIZE}', expected '', 'address' or 'thread'")
endif()
if(MSC_FUZZ)
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
    check_c_source_compiles("
        int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long n);
        int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long n) {
            return data == 0 && n > 0;
        }" MSC_HAS_LIBFUZZER)
    unset(CMAKE_REQUIRED_FLAGS)
    if(NOT MSC_HAS_LIBFUZZER)
        message(FATAL_ERROR "MSC_FUZZ=ON, but ${CMAKE_C_COMPILER} has no libFuzzer: "
            "use clang (-DCMAKE_C_COMPILER=clang) with its runtime (libclang-rt-14-dev)")
    endif()
    if(NOT MSC_SANITIZE STREQUAL "")
        message(FATAL_ERROR "MSC_FUZZ=ON brings sanitizers of its own: leave MSC_SANITIZE empty")
    endif()
    set(MSC_SANITIZE_FLAGS -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow
        -fno-sanitize-recover=all -fno-omit-frame-pointer)
    set(MSC_SANITIZE_ENV "ASAN_OPTIONS=allocator_may_return_null=1;UBSAN_OPTIONS=print_stacktrace=1")
    # Fuzzers put counters into loops, which clang then cannot vectorise as the code requests.
    target_compile_options(msc_flags INTERFACE -Wno-pass-failed)
endif()
if(MSC_SANITIZE_FLAGS)
    target_compile_options(msc_flags INTERFACE ${MSC_SANITIZE_FLAGS})
    target_link_options(msc_flags INTERFACE ${MSC_SANITIZE_FLAGS})
endif()

# Releases may read models and records from untrusted sources, so they are hardened: full RELRO, the stack
# protector, checked functions. Sanitizers have stronger checks of their own.
set(MSC_IS_HARDENED OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT MSC_SANITIZE_FLAGS)
    set(MSC_IS_HARDENED ON)
    target_compile_options(msc_flags INTERFACE -fstack-protector-strong)
    target_compile_definitions(msc_flags INTERFACE _FORTIFY_SOURCE=2)
    target_link_options(msc_flags INTERFACE LINKER:-z,relro,-z,now)
    include(CheckPIESupported)
    check_pie_supported(LANGUAGES C)
endif()

# MSC_WITH_VULKAN and MSC_WITH_ONEDNN say what this build has, after looking for it.
set(MSC_WITH_VULKAN OFF)
if(MSC_VULKAN STREQUAL "AUTO" OR MSC_VULKAN)
    find_package(Vulkan 1.2 COMPONENTS glslc QUIET)
    if(Vulkan_FOUND AND Vulkan_GLSLC_EXECUTABLE)
        set(MSC_WITH_VULKAN ON)
    elseif(NOT MSC_VULKAN STREQUAL "AUTO")
        message(FATAL_ERROR "MSC_VULKAN=ON, but the Vulkan headers, loader or glslc are missing")
    endif()
endif()

set(MSC_WITH_ONEDNN OFF)
set(MSC_ONEDNN_VERSION OFF)
if(MSC_ONEDNN)
    find_path(MSC_ONEDNN_INCLUDE_DIR dnnl.h)
    find_library(MSC_ONEDNN_LIBRARY dnnl)
    if(NOT MSC_ONEDNN_INCLUDE_DIR OR NOT MSC_ONEDNN_LIBRARY)
        message(FATAL_ERROR "oneDNN is missing: install libdnnl-dev or set -DMSC_ONEDNN=OFF")
    endif()
    # MSC_ONEDNN_MAJOR selects routine_onednn_desc_2.c (2.6 and later 2.x) or _3.c (3.5 and later 3.x).
    foreach(part IN ITEMS MAJOR MINOR)
        file(STRINGS "${MSC_ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" line
            REGEX "^#define DNNL_VERSION_${part} [0-9]+")
        string(REGEX REPLACE "[^0-9]" "" MSC_ONEDNN_${part} "${line}")
    endforeach()
    set(MSC_ONEDNN_VERSION "${MSC_ONEDNN_MAJOR}.${MSC_ONEDNN_MINOR}")
    if(MSC_ONEDNN_VERSION VERSION_LESS 2.6 OR MSC_ONEDNN_VERSION VERSION_GREATER_EQUAL 4
            OR (MSC_ONEDNN_MAJOR EQUAL 3 AND MSC_ONEDNN_VERSION VERSION_LESS 3.5))
        message(FATAL_ERROR "oneDNN ${MSC_ONEDNN_VERSION} in ${MSC_ONEDNN_INCLUDE_DIR} is not supported: install "
            "2.6 or a later 2.x, 3.5 or a later 3.x, or set -DMSC_ONEDNN=OFF")
    endif()
    set(MSC_WITH_ONEDNN ON)
    add_library(dnnl UNKNOWN IMPORTED)
    set_target_properties(dnnl PROPERTIES
        IMPORTED_LOCATION "${MSC_ONEDNN_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${MSC_ONEDNN_INCLUDE_DIR}")
endif()
# Matrix products and factorisations, for tools/linear_algebra.h.
find_path(MSC_OPENBLAS_INCLUDE_DIR cblas.h)
find_path(MSC_LAPACKE_INCLUDE_DIR lapacke.h)
find_library(MSC_OPENBLAS_LIBRARY openblas)
find_library(MSC_LAPACKE_LIBRARY lapacke)
if(NOT MSC_OPENBLAS_INCLUDE_DIR OR NOT MSC_OPENBLAS_LIBRARY OR
        NOT MSC_LAPACKE_INCLUDE_DIR OR NOT MSC_LAPACKE_LIBRARY)
    message(FATAL_ERROR "OpenBLAS is missing: install libopenblas-openmp-dev and liblapacke-dev")
endif()
add_library(openblas UNKNOWN IMPORTED)
set_target_properties(openblas PROPERTIES
    IMPORTED_LOCATION "${MSC_OPENBLAS_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MSC_OPENBLAS_INCLUDE_DIR}")
add_library(lapacke UNKNOWN IMPORTED)
set_target_properties(lapacke PROPERTIES
    IMPORTED_LOCATION "${MSC_LAPACKE_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MSC_LAPACKE_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES openblas)
# Chart.js, which is embedded in pages of `mscgym report`. If MSC_CHART_JS is empty, pages have only tables.
set(MSC_CHART_JS "")
if(MSC_REPORT STREQUAL "AUTO" OR MSC_REPORT)
    find_file(MSC_CHART_JS_FILE NAMES chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
    if(MSC_CHART_JS_FILE)
        set(MSC_CHART_JS "${MSC_CHART_JS_FILE}")
    elseif(NOT MSC_REPORT STREQUAL "AUTO")
        message(FATAL_ERROR "MSC_REPORT=ON, but Chart.js is missing: install libjs-chart.js")
    endif()
endif()
set(MSC_WITH_CHARTS OFF)
if(MSC_CHART_JS)
    set(MSC_WITH_CHARTS ON)
endif()
set(MSC_WITH_SERVE OFF)
if(MSC_SERVE STREQUAL "AUTO" OR MSC_SERVE)
    find_path(MSC_MICROHTTPD_INCLUDE_DIR microhttpd.h)
    find_library(MSC_MICROHTTPD_LIBRARY microhttpd)
    if(MSC_MICROHTTPD_INCLUDE_DIR AND MSC_MICROHTTPD_LIBRARY)
        set(MSC_WITH_SERVE ON)
        add_library(microhttpd UNKNOWN IMPORTED)
        set_target_properties(microhttpd PROPERTIES
            IMPORTED_LOCATION "${MSC_MICROHTTPD_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${MSC_MICROHTTPD_INCLUDE_DIR}")
    elseif(NOT MSC_SERVE STREQUAL "AUTO")
        message(FATAL_ERROR "MSC_SERVE=ON, but libmicrohttpd is missing: install libmicrohttpd-dev")
    endif()
endif()
include(msc_toml)
message(STATUS "mscgym: oneDNN ${MSC_ONEDNN_VERSION}, Vulkan ${MSC_WITH_VULKAN}, charts ${MSC_WITH_CHARTS}, serving ${MSC_WITH_SERVE}, TOML ${MSC_WITH_TOML}")
