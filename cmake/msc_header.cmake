# cmake -DIN=/tree/base/log.h -DOUT=/build/include/mscgym/base/log.h -DHEADERS=base/log.h,base/status.h,...
#       -P msc_header.cmake
#
# Writes a public header as it is installed. It includes other headers of the list HEADERS by their installed
# names: #include "base/status.h" becomes #include <mscgym/base/status.h>.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" headers "${HEADERS}")
file(READ "${IN}" text)
string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
foreach(include IN LISTS includes)
    string(REGEX REPLACE "#include \"(.+)\"" "\\1" header "${include}")
    if(NOT header IN_LIST headers)
        message(FATAL_ERROR "${IN} is public and includes ${header}, which is not: "
            "add it to public_headers in cmake/msc_headers.cmake")
    endif()
    string(REPLACE "${include}" "#include <mscgym/${header}>" text "${text}")
endforeach()
file(WRITE "${OUT}" "${text}")
