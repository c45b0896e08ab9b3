# Installs libmscgym, a shared library of all folders' objects, with headers, package files and the program.

get_property(libraries GLOBAL PROPERTY MSC_LIBRARIES)
get_property(outside_libraries GLOBAL PROPERTY MSC_OUTSIDE_LIBRARIES)
list(REMOVE_DUPLICATES outside_libraries)

add_library(libmscgym SHARED)
foreach(library IN LISTS libraries)
    target_sources(libmscgym PRIVATE "$<TARGET_OBJECTS:${library}>")
endforeach()
target_link_libraries(libmscgym PRIVATE msc_options ${outside_libraries})
# Plug-ins call functions of the program that loads them, so they need only the headers. Headers use cJSON's
# types, which users read and free with cJSON's own functions.
add_library(libmscgym_headers INTERFACE)
target_include_directories(libmscgym_headers INTERFACE
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
target_link_libraries(libmscgym INTERFACE libmscgym_headers cjson m)
set_target_properties(libmscgym_headers PROPERTIES EXPORT_NAME headers)
set_target_properties(libmscgym PROPERTIES
    OUTPUT_NAME mscgym
    EXPORT_NAME mscgym
    LINKER_LANGUAGE ${MSC_LINKER_LANGUAGE})
if(NOT SKBUILD) # wheels cannot hold links: each name would be a copy
    set_target_properties(libmscgym PROPERTIES
        VERSION "${PROJECT_VERSION}"
        SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
endif()

# Components: runtime (the program and what goes with it), library (libmscgym.so.VERSION), development (headers,
# the link to the library, package files).
install(TARGETS libmscgym libmscgym_headers EXPORT mscgym-targets
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT library NAMELINK_COMPONENT development)
if(TARGET mscgym)
    install(TARGETS mscgym RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT runtime)
endif()

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/mscgym")
include(CMakePackageConfigHelpers)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/mscgym-config.cmake.in"
    "${PROJECT_BINARY_DIR}/mscgym-config.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/mscgym-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/mscgym-config.cmake"
    "${PROJECT_BINARY_DIR}/mscgym-config-version.cmake"
    DESTINATION "${package_folder}" COMPONENT development)
install(EXPORT mscgym-targets NAMESPACE mscgym:: DESTINATION "${package_folder}" COMPONENT development)

# The prefix is relative to the package file, so that an installed tree can be moved.
file(RELATIVE_PATH MSC_PREFIX_FROM_PC
    "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/mscgym.pc.in" "${PROJECT_BINARY_DIR}/mscgym.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/mscgym.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
