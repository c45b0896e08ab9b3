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
# Plug-ins call functions of the program that loads them: they take the headers alone. Headers show
# trees of cJSON, which users walk and free with its own functions.
add_library(libmscgym_headers INTERFACE)
target_include_directories(libmscgym_headers INTERFACE
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/mscgym>")
target_link_libraries(libmscgym INTERFACE libmscgym_headers cjson)
set_target_properties(libmscgym_headers PROPERTIES EXPORT_NAME headers)
set_target_properties(libmscgym PROPERTIES
    OUTPUT_NAME mscgym
    EXPORT_NAME mscgym
    LINKER_LANGUAGE C)
if(NOT SKBUILD) # wheels hold no links, so that each name would be a file
    set_target_properties(libmscgym PROPERTIES
        VERSION "${PROJECT_VERSION}"
        SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
endif()

install(TARGETS libmscgym libmscgym_headers EXPORT mscgym-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET mscgym)
    install(TARGETS mscgym RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# What programs and plug-ins may use; every other header is the library's own, and what it declares is
# hidden. They keep their folders, so that #include "base/status.h" reads the same inside and outside.
# To add one: here, with all that it includes, and base/public.h around its contents.
set(public_headers
    agents/agent.h
    base/alloc.h
    base/cancel.h
    base/hash.h
    base/json.h
    base/log.h
    base/param.h
    base/public.h
    base/rng.h
    base/status.h
    base/str.h
    data/array.h
    data/array_file.h
    data/dataset.h
    data/dtype.h
    data/npy.h
    data/safetensors.h
    env/api/env.h
    env/api/space.h
    env/api/trial.h
    env/distill.h
    env/env.h
    env/gym.h
    env/loss.h
    graph/channels.h
    graph/cost.h
    graph/edit.h
    graph/graph.h
    graph/onnx/load.h
    graph/onnx/onnx.h
    graph/op.h
    graph/op_attrs.h
    graph/ops.def
    graph/passes/bind.h
    graph/passes/prune.h
    graph/quant.h
    graph/site.h
    graph/target.h
    graph/view.h
    kernels/backend.h
    kernels/engine/backends.h
    kernels/engine/evaluator.h
    kernels/plan.h
    pipeline/collect.h
    pipeline/config.h
    pipeline/model.h
    pipeline/processor.h
    pipeline/strategies.h
    pipeline/track.h
    records/record.h
    records/record_front.h
    records/record_header.h
    records/record_query.h
    records/record_scan.h
    search/analysis.h
    search/estimate.h
    search/history.h
    search/phases.h
    search/report.h
    search/search.h
    search/supervise.h
    search/verify.h
    search/warm.h
    tools/quantizer.h
    tools/range.h
    tools/strategy.h)
foreach(header IN LISTS public_headers)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "${PROJECT_SOURCE_DIR}/${header}"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/mscgym/${folder}")
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
