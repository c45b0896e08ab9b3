# cmake -DIN=page.css -DNAME=style -DOUT=asset_style.c -P msc_embed.cmake
#
# Writes the bytes of files, one behind the other, as a struct msc_asset (report/assets.h), with the SHA-256
# of all of them as base64, the form in which a content-security policy names a script. IN, a list, empty: an
# asset without bytes.
function(msc_base64 out hex)
    set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    set(text "")
    foreach(begin RANGE 0 54 6) # 24 bits are four characters; of the last 16 bits three
        string(SUBSTRING "${hex}" ${begin} 6 group)
        foreach(shift IN ITEMS 18 12 6 0)
            math(EXPR at "(0x${group} >> ${shift}) & 63")
            string(SUBSTRING "${alphabet}" ${at} 1 character)
            string(APPEND text "${character}")
        endforeach()
    endforeach()
    string(SUBSTRING "${hex}" 60 4 group)
    foreach(shift IN ITEMS 10 4 -2)
        if(shift LESS 0)
            math(EXPR at "(0x${group} << 2) & 63")
        else()
            math(EXPR at "(0x${group} >> ${shift}) & 63")
        endif()
        string(SUBSTRING "${alphabet}" ${at} 1 character)
        string(APPEND text "${character}")
    endforeach()
    set(${out} "${text}=" PARENT_SCOPE)
endfunction()

if(IN)
    file(WRITE "${OUT}.bytes" "")
    foreach(file IN LISTS IN)
        file(READ "${file}" text)
        file(APPEND "${OUT}.bytes" "${text}")
    endforeach()
    file(READ "${OUT}.bytes" bytes HEX)
    file(SHA256 "${OUT}.bytes" digest)
    msc_base64(hash "${digest}")
    string(LENGTH "${bytes}" length)
    math(EXPR length "${length} / 2")
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
else()
    set(bytes "0")
    set(hash "")
    set(length 0)
endif()
file(WRITE "${OUT}" "#include \"report/assets.h\"

static const unsigned char ${NAME}_bytes[] = {\n${bytes}\n};
const struct msc_asset msc_asset_${NAME} = {(const char *)${NAME}_bytes, ${length}, \"${hash}\"};\n")
