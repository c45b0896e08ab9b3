# Folders of a wheel, which scikit-build-core makes (pyproject.toml): the program, the library and the headers
# are inside the Python package, manual pages and completions in share/ of the environment.
set(CMAKE_INSTALL_BINDIR mscgym/bin)
set(CMAKE_INSTALL_LIBDIR mscgym/lib)
set(CMAKE_INSTALL_INCLUDEDIR mscgym/include)
set(CMAKE_INSTALL_DATADIR "${SKBUILD_DATA_DIR}/share")
set(CMAKE_INSTALL_MANDIR "${SKBUILD_DATA_DIR}/share/man")
set(CMAKE_INSTALL_DOCDIR "${SKBUILD_DATA_DIR}/share/doc/mscgym")

# Keeps the paths of temporary folders out of what is built, so that two builds are equal.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" "-ffile-prefix-map=${PROJECT_BINARY_DIR}/=")

# In a wheel mscgym-runtime and mscgym-client are modules. The program finds these launchers in its own folder. They
# start the modules with the Python that the package is installed for.
foreach(module runtime client)
    set(launcher "${PROJECT_BINARY_DIR}/wheel/mscgym-${module}")
    file(WRITE "${launcher}" "#!/bin/sh
exec \"\${MSCGYM_PYTHON:-python3}\" -m mscgym.${module} \"$@\"
")
    install(PROGRAMS "${launcher}" DESTINATION mscgym/bin)
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/tools/mscgym-runtime" DESTINATION mscgym RENAME runtime.py)
install(FILES "${PROJECT_SOURCE_DIR}/tools/mscgym-runtime-web.mjs" DESTINATION mscgym)

# The headers include cJSON.h, which machines that install wheels may lack.
find_path(MSC_CJSON_INCLUDE_DIR cjson/cJSON.h REQUIRED)
install(FILES "${MSC_CJSON_INCLUDE_DIR}/cjson/cJSON.h" DESTINATION mscgym/include/cjson)

foreach(folder examples python/examples)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}/" DESTINATION mscgym/share/examples
        FILES_MATCHING PATTERN "*.c" PATTERN "*.ipynb" PATTERN "*.json" PATTERN "*.md" PATTERN "*.np[yz]"
            PATTERN "*.onnx" PATTERN "*.py" PATTERN "*.yaml" PATTERN "CMakeLists.txt"
        PATTERN msc_workspace EXCLUDE PATTERN __pycache__ EXCLUDE PATTERN build EXCLUDE)
endforeach()
