# msc_add_library(msc_graph SOURCES graph.c ... LIBS msc_data ...)
#
# Adds the static library of a folder. It and the external libraries that it needs are recorded, so that
# libmscgym can be made of them. base/public.h defines what libmscgym exports.
function(msc_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "msc_add_library(${name}): unknown ${arg_UNPARSED_ARGUMENTS}")
    endif()
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC msc_options ${arg_LIBS})
    set_target_properties(${name} PROPERTIES
        C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    set_property(GLOBAL APPEND PROPERTY MSC_LIBRARIES ${name})
    foreach(lib IN LISTS arg_LIBS)
        if(NOT lib MATCHES "^msc_")
            set_property(GLOBAL APPEND PROPERTY MSC_OUTSIDE_LIBRARIES ${lib})
        endif()
    endforeach()
endfunction()

# msc_add_skipped(tree_length quick "no Python 3")
#
# Stands in for a test for which this machine lacks something. ctest lists it as skipped, and its output
# says why. scripts/test collects such lines.
function(msc_add_skipped name label reason)
    add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: ${reason}")
    set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

# msc_add_test(graph_names SOURCES test_names.c LIBS msc_graph LABELS quick ENV NAME=value)
#
# Adds a cmocka program test_<name> and a ctest <name>. LABELS defaults to quick.
function(msc_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;LABELS;ENV")
    if(arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "msc_add_test(${name}): unknown ${arg_UNPARSED_ARGUMENTS}")
    endif()
    if(NOT arg_LABELS)
        set(arg_LABELS quick)
    endif()
    add_executable(test_${name} ${arg_SOURCES})
    target_link_libraries(test_${name} PRIVATE msc_options ${arg_LIBS} cmocka)
    target_compile_definitions(test_${name} PRIVATE
        MSC_TESTS_FOLDER="${PROJECT_SOURCE_DIR}/tests")
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES
        LABELS "${arg_LABELS}"
        TIMEOUT ${MSC_TEST_TIMEOUT}
        ENVIRONMENT "OMP_WAIT_POLICY=passive;${MSC_SANITIZE_ENV};${arg_ENV}")
endfunction()

# msc_add_plugin(plugin_good plugin_env.c)
#
# Builds NAME.so from one source that includes mscgym/..., as users build plug-ins: with the public headers. The
# program that loads it has the functions that it calls.
function(msc_add_plugin name source)
    add_library(${name} MODULE "${source}")
    add_dependencies(${name} msc_public_headers)
    target_include_directories(${name} PRIVATE "${MSC_PUBLIC_INCLUDE_DIR}")
    target_link_libraries(${name} PRIVATE msc_flags)
    set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so")
endfunction()
