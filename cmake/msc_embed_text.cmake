# msc_embed_text(TARGET NAME FILE)
#
# Adds `const char NAME[]` to a target: the text of FILE, ended by a zero byte. The custom command runs this file
# as a script with IN, NAME and OUT.
function(msc_embed_text target name file)
    set(in "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    set(out "${CMAKE_CURRENT_BINARY_DIR}/${file}.c")
    add_custom_command(OUTPUT "${out}"
        COMMAND "${CMAKE_COMMAND}" "-DIN=${in}" "-DNAME=${name}" "-DOUT=${out}"
            -P "${PROJECT_SOURCE_DIR}/cmake/msc_embed_text.cmake"
        DEPENDS "${in}" "${PROJECT_SOURCE_DIR}/cmake/msc_embed_text.cmake"
        COMMENT "Embedding ${file}"
        VERBATIM)
    target_sources(${target} PRIVATE "${out}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
    file(READ "${IN}" bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    file(WRITE "${OUT}" "extern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}0x00};\n")
endif()
