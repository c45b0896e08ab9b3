# Compiles kernels/vulkan/shaders/<source> into <name>.inc, a list of words; further arguments are macros.
function(msc_add_shader name source)
    set(path "${PROJECT_SOURCE_DIR}/kernels/vulkan/shaders/${source}")
    set(out "${CMAKE_CURRENT_BINARY_DIR}/shaders/${name}.inc")
    set(flags -O --target-env=vulkan1.2 "-I${PROJECT_SOURCE_DIR}")
    foreach(macro IN LISTS ARGN)
        list(APPEND flags "-D${macro}")
    endforeach()
    add_custom_command(OUTPUT "${out}"
        COMMAND "${Vulkan_GLSLC_EXECUTABLE}" ${flags} -mfmt=num -MD -MF "${out}.d" -MT "${out}"
            -o "${out}" "${path}"
        DEPENDS "${path}"
        DEPFILE "${out}.d"
        COMMENT "Compiling shader ${name}"
        VERBATIM)
endfunction()

# Sets MSC_GLSLC_HAS_MATRICES to whether glslc knows GL_KHR_cooperative_matrix, as it does since 2023.7.
function(msc_check_matrices)
    if(DEFINED MSC_GLSLC_HAS_MATRICES)
        return()
    endif()
    set(source "${CMAKE_CURRENT_BINARY_DIR}/matrices.comp")
    file(WRITE "${source}" "#version 450\n#extension GL_KHR_cooperative_matrix : require\nvoid main() {}\n")
    execute_process(COMMAND "${Vulkan_GLSLC_EXECUTABLE}" --target-env=vulkan1.2 -o "${source}.spv" "${source}"
        RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
        message(STATUS "mscgym: no matrix units of GPUs: ${Vulkan_GLSLC_EXECUTABLE} lacks GL_KHR_cooperative_matrix")
    endif()
    string(COMPARE EQUAL "${failed}" 0 has)
    set(MSC_GLSLC_HAS_MATRICES "${has}" CACHE INTERNAL "glslc compiles shaders for matrix units")
endfunction()

# msc_add_shaders(<out> <shaders.def>)
#
# Compiles every shader of the list and writes a table of their words; sets <out> to its source file. The words of
# shaders that glslc cannot compile are NULL.
function(msc_add_shaders out list)
    msc_check_matrices()
    set(table "${CMAKE_CURRENT_BINARY_DIR}/shaders/shader_table.c")
    set(text "#include \"kernels/vulkan/vk_shaders.h\"\n\n")
    set(rows "")
    set(files "")
    file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/shaders")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
    file(STRINGS "${list}" lines REGEX "^MSC_SHADER")
    foreach(line IN LISTS lines)
        if(NOT line MATCHES "^MSC_SHADER\\(([A-Z0-9_]+), \"([^\"]+)\", ")
            message(FATAL_ERROR "${list}: not a row: ${line}")
        endif()
        set(id "${CMAKE_MATCH_1}")
        string(REPLACE " " ";" source "${CMAKE_MATCH_2}")
        string(TOLOWER "${id}" name)
        if(id STREQUAL "CONV_MATRIX" AND NOT MSC_GLSLC_HAS_MATRICES)
            string(APPEND rows "    [MSC_VK_${id}] = {\"${name}\", NULL, 0},\n")
            continue()
        endif()
        msc_add_shader(${name} ${source})
        list(APPEND files "${CMAKE_CURRENT_BINARY_DIR}/shaders/${name}.inc")
        string(APPEND text "static const uint32_t ${name}[] = {\n#include \"${name}.inc\"\n};\n")
        string(APPEND rows "    [MSC_VK_${id}] = {\"${name}\", ${name}, sizeof(${name})},\n")
    endforeach()
    string(APPEND text "\nconst struct msc_vk_shader_code msc_vk_shader_codes[MSC_VK_SHADER_COUNT + 1] = {\n")
    string(APPEND text "${rows}};\n")
    file(CONFIGURE OUTPUT "${table}" CONTENT "${text}" @ONLY)
    set_source_files_properties("${table}" PROPERTIES OBJECT_DEPENDS "${files}")
    set(${out} "${table}" PARENT_SCOPE)
endfunction()
