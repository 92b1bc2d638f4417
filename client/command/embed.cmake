# cmake -DINPUT=file -DOUTPUT=file.cpp -DNAME=name -P embed.cmake
# Writes a file's bytes as `const std::string_view name` of namespace batchwright.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "#include <string_view>

namespace batchwright {
extern const std::string_view ${NAME};
namespace {
const unsigned char kBytes[] = {
${bytes}};
}
const std::string_view ${NAME}(reinterpret_cast<const char*>(kBytes), sizeof kBytes);
}
")
