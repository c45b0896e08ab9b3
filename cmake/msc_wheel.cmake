# Where things lie in a wheel, which scikit-build-core makes (pyproject.toml): the program, the library and
# the headers inside of Python's package, the manual page where the environment has such pages.
set(CMAKE_INSTALL_BINDIR mscgym/bin)
set(CMAKE_INSTALL_LIBDIR mscgym/lib)
set(CMAKE_INSTALL_INCLUDEDIR mscgym/include)
set(CMAKE_INSTALL_DATADIR "${SKBUILD_DATA_DIR}/share")
set(CMAKE_INSTALL_MANDIR "${SKBUILD_DATA_DIR}/share/man")

# What is built twice is the same: these folders are new each time.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${PROJECT_BINARY_DIR}/=")

# mscgym-runtime is a module here. The program finds this beside itself and so starts it with the Python
# that the package is installed for.
set(launcher "${PROJECT_BINARY_DIR}/wheel/mscgym-runtime")
file(WRITE "${launcher}" "#!/bin/sh
exec \"\${MSCGYM_PYTHON:-python3}\" -m mscgym.runtime \"$@\"
")
install(PROGRAMS "${launcher}" DESTINATION mscgym/bin)
install(FILES "${PROJECT_SOURCE_DIR}/tools/mscgym-runtime" DESTINATION mscgym RENAME runtime.py)

# Our headers include it, and machines that install wheels need not have it.
find_path(MSC_CJSON_INCLUDE_DIR cjson/cJSON.h REQUIRED)
install(FILES "${MSC_CJSON_INCLUDE_DIR}/cjson/cJSON.h" DESTINATION mscgym/include/cjson)

foreach(folder examples python/examples)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/" DESTINATION mscgym/share/examples
        FILES_MATCHING PATTERN "*.c" PATTERN "*.json" PATTERN "*.md" PATTERN "*.np[yz]" PATTERN "*.onnx" PATTERN "*.py"
            PATTERN "*.yaml" PATTERN "CMakeLists.txt"
        PATTERN msc_workspace EXCLUDE PATTERN __pycache__ EXCLUDE PATTERN build EXCLUDE)
endforeach()
