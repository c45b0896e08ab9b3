# msc_add_shader(conv_u_quads conv_u.comp QUADS)
#
# Compiles kernels/vulkan/shaders/<source> into a list of words under <name>; further arguments are
# macros. Call msc_finish_shaders afterwards.
function(msc_add_shader name source)
    set(path "${PROJECT_SOURCE_DIR}/kernels/vulkan/shaders/${source}")
    set(out "${CMAKE_CURRENT_BINARY_DIR}/shaders/${name}.inc")
    set(flags -O --target-env=vulkan1.2 "-I${PROJECT_SOURCE_DIR}")
    foreach(macro IN LISTS ARGN)
        list(APPEND flags "-D${macro}")
    endforeach()
    file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/shaders")
    add_custom_command(OUTPUT "${out}"
        COMMAND "${Vulkan_GLSLC_EXECUTABLE}" ${flags} -mfmt=num -MD -MF "${out}.d" -MT "${out}"
            -o "${out}" "${path}"
        DEPENDS "${path}"
        DEPFILE "${out}.d"
        COMMENT "Compiling shader ${name}"
        VERBATIM)
    set_property(GLOBAL APPEND PROPERTY MSC_SHADERS "${name}")
    set_property(GLOBAL APPEND PROPERTY MSC_SHADER_FILES "${out}")
endfunction()

# Writes the table of all shaders; sets <out> to its source file.
function(msc_finish_shaders out)
    get_property(names GLOBAL PROPERTY MSC_SHADERS)
    get_property(files GLOBAL PROPERTY MSC_SHADER_FILES)
    set(table "${CMAKE_CURRENT_BINARY_DIR}/shaders/shader_table.c")
    set(text "#include \"kernels/vulkan/vk_shaders.h\"\n\n")
    foreach(name IN LISTS names)
        string(APPEND text "static const uint32_t ${name}[] = {\n#include \"${name}.inc\"\n};\n")
    endforeach()
    string(APPEND text "\nconst struct msc_vk_shader_code msc_vk_shader_codes[] = {\n")
    foreach(name IN LISTS names)
        string(APPEND text "    {\"${name}\", ${name}, sizeof(${name})},\n")
    endforeach()
    string(APPEND text "    {0},\n};\n")
    file(CONFIGURE OUTPUT "${table}" CONTENT "${text}" @ONLY)
    set_source_files_properties("${table}" PROPERTIES OBJECT_DEPENDS "${files}")
    set(${out} "${table}" PARENT_SCOPE)
endfunction()
