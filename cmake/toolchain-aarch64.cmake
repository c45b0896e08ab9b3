# Builds for 64-bit Arm with Debian's cross compiler, against the packages that scripts/sysroot-arm64
# unpacks in MSC_SYSROOT. Tools that the build runs are this machine's own. ctest runs the built
# programs under qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH folder)
set(MSC_SYSROOT "${folder}/build/sysroot-arm64" CACHE PATH "Folder made by scripts/sysroot-arm64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MSC_SYSROOT)
if(NOT EXISTS "${MSC_SYSROOT}/usr/lib/aarch64-linux-gnu/crt1.o")
    message(FATAL_ERROR "${MSC_SYSROOT} has no libraries for 64-bit Arm: "
        "run scripts/sysroot-arm64 FOLDER, or name another folder with -DMSC_SYSROOT=FOLDER")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_SYSROOT "${MSC_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(MSC_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(MSC_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${MSC_QEMU}" -L "${MSC_SYSROOT}")
endif()
