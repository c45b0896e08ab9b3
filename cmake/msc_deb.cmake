# cpack runs this when the files of the packages are in CPACK_TEMPORARY_DIRECTORY, in one folder per component.
# It writes changelogs and copyright files, and compresses the files that Debian wants compressed.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
find_program(GZIP gzip REQUIRED)

set(version "${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH if it is set
set(changelog "mscgym (${version}) unstable; urgency=medium

  * Packages of the released sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")

# NOTICE names the copyright holders, and has the terms of embedded code.
file(READ "${CPACK_MSC_SOURCE}/NOTICE" notice)
if(NOT notice MATCHES "\nCopyright ([^\n]+)\n")
    message(FATAL_ERROR "NOTICE: no line 'Copyright ...'")
endif()
set(copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: mscgym

Files: *
Copyright: ${CMAKE_MATCH_1}
License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
if(CPACK_MSC_WITH_CHARTS)
    if(NOT notice MATCHES "\n  Copyright ([^\n]+Chart\\.js[^\n]+)\n\n(  Permission.*)$")
        message(FATAL_ERROR "NOTICE: no copyright of Chart.js with its terms")
    endif()
    set(holders "${CMAKE_MATCH_1}")
    string(REGEX REPLACE "\n+$" "" terms "${CMAKE_MATCH_2}")
    string(REGEX REPLACE "\n\n" "\n .\n" terms "${terms}")
    string(REGEX REPLACE "\n  " "\n " terms "${terms}")
    string(REGEX REPLACE "^  " " " terms "${terms}")
    string(APPEND copyright "
Files: chart.min.js
Copyright: ${holders}
License: Expat
${terms}
Comment: Chart.js, with @kurkle/color, is embedded in the program for the pages of mscgym report.
")
endif()

foreach(component IN LISTS CPACK_COMPONENTS_ALL)
    string(TOUPPER "${component}" upper)
    set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share")
    set(doc "${root}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
    file(WRITE "${doc}/changelog.Debian" "${changelog}")
    file(COPY_FILE "${CPACK_MSC_SOURCE}/CHANGELOG.md" "${doc}/changelog")
    file(WRITE "${doc}/copyright" "${copyright}")
    file(REMOVE "${doc}/LICENSE") # Debian has it in common-licenses
    file(GLOB pages "${root}/man/man1/*.1")
    execute_process(COMMAND "${GZIP}" -9n "${doc}/changelog.Debian" "${doc}/changelog" ${pages}
        COMMAND_ERROR_IS_FATAL ANY)
    file(CHMOD_RECURSE "${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share" FILE_PERMISSIONS
        OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ DIRECTORY_PERMISSIONS
        OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
