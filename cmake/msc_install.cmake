# libmscgym: one shared library made of every folder's objects, with headers, package files and the
# command.

get_property(libraries GLOBAL PROPERTY MSC_LIBRARIES)
get_property(outside_libraries GLOBAL PROPERTY MSC_OUTSIDE_LIBRARIES)
list(REMOVE_DUPLICATES outside_libraries)

add_library(libmscgym SHARED)
foreach(library IN LISTS libraries)
    target_sources(libmscgym PRIVATE "$<TARGET_OBJECTS:${library}>")
endforeach()
target_link_libraries(libmscgym PRIVATE msc_options ${outside_libraries})
target_include_directories(libmscgym INTERFACE
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/mscgym>")
set_target_properties(libmscgym PROPERTIES
    OUTPUT_NAME mscgym
    EXPORT_NAME mscgym
    LINKER_LANGUAGE C
    VERSION "${PROJECT_VERSION}"
    SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")

install(TARGETS libmscgym EXPORT mscgym-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET mscgym)
    install(TARGETS mscgym RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# Headers keep their folders, so that #include "base/status.h" reads the same inside and outside.
set(public_folders ${MSC_FOLDERS})
list(REMOVE_ITEM public_folders cli)
foreach(folder IN LISTS public_folders)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/mscgym"
        FILES_MATCHING
        PATTERN "*.h"
        PATTERN "*_internal.h" EXCLUDE
        PATTERN "cpu" EXCLUDE
        PATTERN "vulkan" EXCLUDE)
endforeach()

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/mscgym")
include(CMakePackageConfigHelpers)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/mscgym-config.cmake.in"
    "${PROJECT_BINARY_DIR}/mscgym-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mscgym-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/mscgym-config.cmake"
    "${PROJECT_BINARY_DIR}/mscgym-config-version.cmake"
    DESTINATION "${package_folder}")
install(EXPORT mscgym-targets NAMESPACE mscgym:: DESTINATION "${package_folder}")

# Found from where the file lies, so that a tree installed or moved elsewhere works.
file(RELATIVE_PATH MSC_PREFIX_FROM_PC
    "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/mscgym.pc.in" "${PROJECT_BINARY_DIR}/mscgym.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/mscgym.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
