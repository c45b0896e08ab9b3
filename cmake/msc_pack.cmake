# `cpack` in a build folder makes Debian packages of it: mscgym (the program), libmscgymVERSION (the library) and
# libmscgym-dev. Configure with -DCMAKE_INSTALL_PREFIX=/usr (preset deb), so that libraries go where Debian has them.

# The maintainer of the packages, from the variables that Debian's own tools read.
set(MSC_MAINTAINER "The mscgym authors <mscgym@example.org>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
    set(MSC_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
# Less than 1, the first revision of a package that Debian makes itself; greater for a later release of Debian, whose
# libraries differ.
set(release "")
if(EXISTS /etc/os-release)
    file(STRINGS /etc/os-release release REGEX "^VERSION_ID=")
    string(REGEX REPLACE "^VERSION_ID=\"?([0-9.]*).*$" "+deb\\1" release "${release}")
endif()
set(MSC_DEB_REVISION "0local1${release}" CACHE STRING "Debian revision of the packages")
set(library_package "libmscgym${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}") # as its soname

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR "The mscgym authors")
set(CPACK_PACKAGE_CONTACT "${MSC_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL runtime library development)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE "${MSC_DEB_REVISION}")
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
endif()

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME mscgym)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS python3) # for mscgym-runtime and mscgym-client
if(MSC_WITH_VULKAN)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS libvulkan1)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "mesa-vulkan-drivers | vulkan-icd")
endif()
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "search for the best compression of a trained neural network
 mscgym takes an ONNX model and some inputs and tries thousands of compression
 plans: how many bits each tensor gets, over which range, and which channels
 are removed. It writes the best plan as a smaller ONNX model. It can resume
 an interrupted search.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME "${library_package}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "compression of trained neural networks - shared library
 mscgym searches for the best way to compress a trained neural network. This
 package has the shared library, for programs that read, run, compress and
 export models themselves.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmscgym-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${library_package} (= ${PROJECT_VERSION}-${MSC_DEB_REVISION}), libcjson-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "compression of trained neural networks - development files
 mscgym searches for the best way to compress a trained neural network. This
 package has the headers for plug-ins (agents and environments) and for
 programs that link the library, with files for pkg-config and CMake.")

# Adds what Debian requires of a package in addition to the installed files.
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/msc_deb.cmake")
set(CPACK_POST_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/msc_deb_trigger.cmake")
set(CPACK_MSC_SOURCE "${PROJECT_SOURCE_DIR}")
set(CPACK_MSC_WITH_CHARTS "${MSC_WITH_CHARTS}")
include(CPack)
