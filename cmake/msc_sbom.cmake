# mscgym.spdx.json: the libraries that the program and the library link, and the code of others that they contain,
# as an SPDX 2.3 document. Versions come from the headers and files that CMake found. No built program is run.

# msc_sbom_version(out FILE REGEX...): sets out to what the groups of the REGEXes match in FILE, joined by dots; to
# an empty string if FILE does not exist or a REGEX does not match.
function(msc_sbom_version out file)
    set(${out} "" PARENT_SCOPE)
    if(NOT EXISTS "${file}")
        return()
    endif()
    file(READ "${file}" text)
    set(parts "")
    foreach(regex IN LISTS ARGN)
        if(NOT text MATCHES "${regex}")
            return()
        endif()
        list(APPEND parts "${CMAKE_MATCH_1}")
    endforeach()
    list(JOIN parts "." version)
    set(${out} "${version}" PARENT_SCOPE)
endfunction()

# msc_sbom_add(NAME RELATION LICENSE URL VERSION): one package, and how mscgym relates to it.
function(msc_sbom_add name relation license url version)
    string(REGEX REPLACE "[^A-Za-z0-9.-]" "-" id "SPDXRef-${name}")
    set(shown "")
    if(NOT version STREQUAL "")
        set(shown "\n      \"versionInfo\": \"${version}\",")
    endif()
    string(APPEND packages ",
    {
      \"SPDXID\": \"${id}\",
      \"name\": \"${name}\",${shown}
      \"downloadLocation\": \"${url}\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"${license}\",
      \"licenseDeclared\": \"${license}\",
      \"copyrightText\": \"NOASSERTION\"
    }")
    string(APPEND relationships ",
    {\"spdxElementId\": \"SPDXRef-mscgym\", \"relationshipType\": \"${relation}\", \"relatedSpdxElement\": \"${id}\"}")
    set(packages "${packages}" PARENT_SCOPE)
    set(relationships "${relationships}" PARENT_SCOPE)
endfunction()

set(packages "
    {
      \"SPDXID\": \"SPDXRef-mscgym\",
      \"name\": \"mscgym\",
      \"versionInfo\": \"${PROJECT_VERSION}\",
      \"downloadLocation\": \"NOASSERTION\",
      \"filesAnalyzed\": false,
      \"licenseConcluded\": \"Apache-2.0\",
      \"licenseDeclared\": \"Apache-2.0\",
      \"copyrightText\": \"Copyright 2026 The mscgym authors\",
      \"summary\": \"${PROJECT_DESCRIPTION}\"
    }")
set(relationships "
    {\"spdxElementId\": \"SPDXRef-DOCUMENT\", \"relationshipType\": \"DESCRIBES\", \"relatedSpdxElement\": \"SPDXRef-mscgym\"}")

set(number "([0-9]+)")
set(text "\"[ A-Za-z]*([0-9][^ \"]*) *\"") # "1.2.13", " OpenBLAS 0.3.21 "
find_path(MSC_CJSON_INCLUDE_DIR cjson/cJSON.h)
set(file "${MSC_CJSON_INCLUDE_DIR}/cjson/cJSON.h")
msc_sbom_version(version "${file}"
    "CJSON_VERSION_MAJOR ${number}" "CJSON_VERSION_MINOR ${number}" "CJSON_VERSION_PATCH ${number}")
msc_sbom_add(cJSON DYNAMIC_LINK MIT "https://github.com/DaveGamble/cJSON" "${version}")

find_path(MSC_XXHASH_INCLUDE_DIR xxhash.h)
msc_sbom_version(version "${MSC_XXHASH_INCLUDE_DIR}/xxhash.h"
    "XXH_VERSION_MAJOR +${number}" "XXH_VERSION_MINOR +${number}" "XXH_VERSION_RELEASE +${number}")
msc_sbom_add(xxHash DYNAMIC_LINK BSD-2-Clause "https://github.com/Cyan4973/xxHash" "${version}")

msc_sbom_version(version "${MSC_ZLIB_INCLUDE_DIR}/zlib.h" "define ZLIB_VERSION ${text}")
msc_sbom_add(zlib DYNAMIC_LINK Zlib "https://zlib.net" "${version}")

msc_sbom_version(version "${MSC_ZIP_INCLUDE_DIR}/zipconf.h" "define LIBZIP_VERSION ${text}")
msc_sbom_add(libzip DYNAMIC_LINK BSD-3-Clause "https://libzip.org" "${version}")

# Its header has no version, its package file does.
cmake_path(GET MSC_YAML_LIBRARY PARENT_PATH folder)
msc_sbom_version(version "${folder}/pkgconfig/yaml-0.1.pc" "Version: *([0-9.]+)")
msc_sbom_add(libyaml DYNAMIC_LINK MIT "https://pyyaml.org/wiki/LibYAML" "${version}")

if(MSC_WITH_TOML)
    file(GLOB file "${MSC_TOML_INCLUDE_DIR}/toml++/impl/version.h*") # .hpp since 3.4
    msc_sbom_version(version "${file}"
        "TOML_LIB_MAJOR +${number}" "TOML_LIB_MINOR +${number}" "TOML_LIB_PATCH +${number}")
    msc_sbom_add(toml++ DYNAMIC_LINK MIT "https://github.com/marzer/tomlplusplus" "${version}")
    foreach(name libstdc++ libgcc)
        msc_sbom_add(${name} DYNAMIC_LINK "GPL-3.0-or-later WITH GCC-exception-3.1" "https://gcc.gnu.org"
            "${CMAKE_CXX_COMPILER_VERSION}")
    endforeach()
endif()

msc_sbom_version(version "${MSC_PROTOBUF_C_INCLUDE_DIR}/protobuf-c/protobuf-c.h" "define PROTOBUF_C_VERSION[ \t]+${text}")
msc_sbom_add(protobuf-c DYNAMIC_LINK BSD-2-Clause "https://github.com/protobuf-c/protobuf-c" "${version}")

msc_sbom_version(version "${MSC_OPENBLAS_INCLUDE_DIR}/openblas_config.h" "define OPENBLAS_VERSION ${text}")
msc_sbom_add(OpenBLAS DYNAMIC_LINK BSD-3-Clause "https://www.openblas.net" "${version}")

# Its headers have no version, its package file does.
cmake_path(GET MSC_LAPACKE_LIBRARY PARENT_PATH folder)
msc_sbom_version(version "${folder}/pkgconfig/lapacke.pc" "Version: *([0-9.]+)")
msc_sbom_add(LAPACKE DYNAMIC_LINK BSD-3-Clause "https://www.netlib.org/lapack/" "${version}")

if(MSC_WITH_ONEDNN)
    set(file "${MSC_ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
    msc_sbom_version(version "${file}"
        "VERSION_MAJOR ${number}" "VERSION_MINOR ${number}" "VERSION_PATCH ${number}")
    msc_sbom_add(oneDNN DYNAMIC_LINK Apache-2.0 "https://github.com/oneapi-src/oneDNN" "${version}")
endif()

if(MSC_WITH_SERVE)
    # 0x00097500 is 0.9.75
    msc_sbom_version(version "${MSC_MICROHTTPD_INCLUDE_DIR}/microhttpd.h" "define MHD_VERSION 0x([0-9]+)")
    if(version MATCHES "^0?([0-9]+)(0|([1-9]))([0-9])(0|([1-9]))([0-9])..$")
        set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_3}${CMAKE_MATCH_4}.${CMAKE_MATCH_6}${CMAKE_MATCH_7}")
    endif()
    msc_sbom_add(libmicrohttpd DYNAMIC_LINK LGPL-2.1-or-later "https://www.gnu.org/software/libmicrohttpd/" "${version}")
endif()

if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    msc_sbom_add(libgomp DYNAMIC_LINK "GPL-3.0-or-later WITH GCC-exception-3.1" "https://gcc.gnu.org"
        "${CMAKE_C_COMPILER_VERSION}")
elseif(CMAKE_C_COMPILER_ID STREQUAL "Clang")
    msc_sbom_add(LLVM-OpenMP DYNAMIC_LINK "Apache-2.0 WITH LLVM-exception" "https://openmp.llvm.org"
        "${CMAKE_C_COMPILER_VERSION}")
endif()

find_path(MSC_LIBC_INCLUDE_DIR features.h)
msc_sbom_version(version "${MSC_LIBC_INCLUDE_DIR}/features.h"
    "define[ \t]+__GLIBC__[ \t]+${number}" "define[ \t]+__GLIBC_MINOR__[ \t]+${number}")
if(version)
    msc_sbom_add(glibc DYNAMIC_LINK LGPL-2.1-or-later "https://www.gnu.org/software/libc/" "${version}")
endif()

# Code that is compiled in.
msc_sbom_version(version "${MSC_STB_INCLUDE_DIR}/stb/stb_image.h" "stb_image - v([0-9.]+)")
msc_sbom_add(stb_image CONTAINS "MIT OR Unlicense" "https://github.com/nothings/stb" "${version}")

if(MSC_WITH_VULKAN)
    msc_sbom_version(version "${Vulkan_INCLUDE_DIR}/vulkan/vulkan_core.h"
        "VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\\(0, ${number}, " "VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\\(0, [0-9]+, ${number}"
        "define VK_HEADER_VERSION ${number}")
    msc_sbom_add(Vulkan-Headers DEPENDS_ON Apache-2.0 "https://github.com/KhronosGroup/Vulkan-Headers" "${version}")
endif()

if(MSC_WITH_CHARTS)
    msc_sbom_version(version "${MSC_CHART_JS}" "Chart.js v([0-9.]+)")
    msc_sbom_add(Chart.js CONTAINS MIT "https://www.chartjs.org" "${version}")
    msc_sbom_version(version "${MSC_CHART_JS}" "@kurkle/color v([0-9.]+)")
    msc_sbom_add(kurkle-color CONTAINS MIT "https://github.com/kurkle/color" "${version}")
endif()

string(TIMESTAMP created "%Y-%m-%dT%H:%M:%SZ" UTC) # SOURCE_DATE_EPOCH if it is set
string(UUID uuid NAMESPACE "6ba7b811-9dad-11d1-80b4-00c04fd430c8" NAME "${packages}${created}" TYPE SHA1)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/mscgym.spdx.json" @ONLY CONTENT
"{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"mscgym-${PROJECT_VERSION}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/mscgym-${PROJECT_VERSION}-${uuid}\",
  \"creationInfo\": {\"created\": \"${created}\", \"creators\": [\"Tool: CMake-${CMAKE_VERSION}\"]},
  \"packages\": [${packages}
  ],
  \"relationships\": [${relationships}
  ]
}
")
install(FILES "${PROJECT_BINARY_DIR}/mscgym.spdx.json" "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)
