# Finds protobuf-c: the compiler protoc-c and its library.
function(msc_find_protobuf)
    find_program(MSC_PROTOC_C protoc-c)
    find_path(MSC_PROTOBUF_C_INCLUDE_DIR protobuf-c/protobuf-c.h)
    find_library(MSC_PROTOBUF_C_LIBRARY protobuf-c)
    if(NOT MSC_PROTOC_C OR NOT MSC_PROTOBUF_C_LIBRARY OR NOT MSC_PROTOBUF_C_INCLUDE_DIR)
        message(FATAL_ERROR "mscgym needs protobuf-c-compiler and libprotobuf-c-dev")
    endif()
endfunction()

# msc_add_proto(target FILE.proto): adds a library of the C code generated in the build folder, which is compiled
# without the project's warnings.
function(msc_add_proto target proto)
    msc_find_protobuf()
    get_filename_component(folder_of_proto "${proto}" DIRECTORY)
    get_filename_component(name "${proto}" NAME)
    get_filename_component(stem "${proto}" NAME_WE)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}")
    add_custom_command(
        OUTPUT "${folder}/${stem}.pb-c.c" "${folder}/${stem}.pb-c.h"
        COMMAND "${MSC_PROTOC_C}" "--proto_path=${folder_of_proto}" "--c_out=${folder}" "${name}"
        DEPENDS "${proto}"
        VERBATIM)
    add_library(${target} STATIC "${folder}/${stem}.pb-c.c" "${folder}/${stem}.pb-c.h")
    target_include_directories(${target} SYSTEM PUBLIC "${folder}"
        "${MSC_PROTOBUF_C_INCLUDE_DIR}")
    target_link_libraries(${target} PUBLIC "${MSC_PROTOBUF_C_LIBRARY}")
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden)
    set_property(GLOBAL APPEND PROPERTY MSC_LIBRARIES ${target})
    set_property(GLOBAL APPEND PROPERTY MSC_OUTSIDE_LIBRARIES protobuf-c)
endfunction()
