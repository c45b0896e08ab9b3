# cpack runs this on the packages that it made. cpack writes maintainer scripts that call ldconfig. Debian wants
# packages with libraries to request it by a trigger, so this replaces the scripts with a trigger.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
find_program(DPKG_DEB dpkg-deb REQUIRED)
foreach(package IN LISTS CPACK_PACKAGE_FILES)
    set(folder "${package}.files")
    file(REMOVE_RECURSE "${folder}")
    execute_process(COMMAND "${DPKG_DEB}" --raw-extract "${package}" "${folder}" COMMAND_ERROR_IS_FATAL ANY)
    if(EXISTS "${folder}/DEBIAN/shlibs")
        file(REMOVE "${folder}/DEBIAN/postinst" "${folder}/DEBIAN/postrm")
        file(WRITE "${folder}/DEBIAN/triggers" "activate-noawait ldconfig\n")
        file(CHMOD "${folder}/DEBIAN/triggers" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
        execute_process(COMMAND "${DPKG_DEB}" --root-owner-group -Zxz --build "${folder}" "${package}"
            OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
    endif()
    file(REMOVE_RECURSE "${folder}")
endforeach()
