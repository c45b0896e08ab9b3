# msc_add_onnx_proto(target): a library of the C form of Debian's onnx.proto, made in the build
# folder. Generated code is not held to our warnings.
function(msc_add_onnx_proto target)
    find_program(MSC_PROTOC_C protoc-c)
    find_file(MSC_ONNX_PROTO onnx/onnx.proto PATHS /usr/include /usr/local/include)
    find_path(MSC_PROTOBUF_C_INCLUDE_DIR protobuf-c/protobuf-c.h)
    find_library(MSC_PROTOBUF_C_LIBRARY protobuf-c)
    if(NOT MSC_PROTOC_C OR NOT MSC_ONNX_PROTO OR NOT MSC_PROTOBUF_C_LIBRARY
            OR NOT MSC_PROTOBUF_C_INCLUDE_DIR)
        message(FATAL_ERROR "ONNX needs protobuf-c-compiler, libprotobuf-c-dev and libonnx-dev")
    endif()
    set(folder "${CMAKE_CURRENT_BINARY_DIR}")
    get_filename_component(proto_folder "${MSC_ONNX_PROTO}" DIRECTORY)
    add_custom_command(
        OUTPUT "${folder}/onnx.pb-c.c" "${folder}/onnx.pb-c.h"
        COMMAND "${MSC_PROTOC_C}" "--proto_path=${proto_folder}" "--c_out=${folder}" onnx.proto
        DEPENDS "${MSC_ONNX_PROTO}"
        VERBATIM)
    add_library(${target} STATIC "${folder}/onnx.pb-c.c" "${folder}/onnx.pb-c.h")
    target_include_directories(${target} SYSTEM PUBLIC "${folder}"
        "${MSC_PROTOBUF_C_INCLUDE_DIR}")
    target_link_libraries(${target} PUBLIC "${MSC_PROTOBUF_C_LIBRARY}")
    set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden)
    set_property(GLOBAL APPEND PROPERTY MSC_LIBRARIES ${target})
    set_property(GLOBAL APPEND PROPERTY MSC_OUTSIDE_LIBRARIES protobuf-c)
endfunction()
