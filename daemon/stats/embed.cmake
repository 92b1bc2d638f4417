# A file's bytes within a program.
#   include(embed.cmake)        gives embed(TARGET NAME FILE): `extern const std::string_view NAME`
#   cmake -DINPUT=file -DOUTPUT=file.cpp -DNAME=name -P embed.cmake     does the work, at build time
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE ${OUTPUT} "#include <string_view>

namespace batchwright {
extern const std::string_view ${NAME};
namespace {
const unsigned char ${NAME}Bytes[] = {
${bytes}};
}
const std::string_view ${NAME}(reinterpret_cast<const char*>(${NAME}Bytes), sizeof ${NAME}Bytes);
}
")
  return()
endif()

set(embed_script ${CMAKE_CURRENT_LIST_FILE})
function(embed target name file)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${file} -DOUTPUT=${output} -DNAME=${name} -P ${embed_script}
    DEPENDS ${file} ${embed_script} VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
