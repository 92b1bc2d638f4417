# Fails when the library shows a symbol that is not of the C ABI, or needs a library it must not.
#   cmake -DLIBRARY=FILE -DNM=nm -DREADELF=readelf -P exports.cmake
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols
  COMMAND_ERROR_IS_FATAL ANY)
set(version BATCHWRIGHT_STORAGE_1)
string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
foreach(line IN LISTS symbols)
  if(NOT line MATCHES " T bw_writer_[a-z_]+@@${version}$" AND NOT line MATCHES " A ${version}(@@${version})?$")
    message(SEND_ERROR "exported: ${line}")
  endif()
endforeach()
list(LENGTH symbols count)
if(count LESS 13)
  message(SEND_ERROR "only ${count} symbols are exported")
endif()

execute_process(COMMAND ${READELF} -d ${LIBRARY} OUTPUT_VARIABLE entries
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Shared library: \\[[^]]+" needed "${entries}")
foreach(line IN LISTS needed)
  if(NOT line MATCHES "\\[(liblmdb|libisal|libfmt|libstdc\\+\\+|libgcc_s|libc|libm|ld-linux.*|lib[a-z]*san)\\.so")
    message(SEND_ERROR "needed: ${line}")
  endif()
endforeach()
if(NOT entries MATCHES "soname: \\[libbatchwright-storage\\.so\\.1\\]")
  message(SEND_ERROR "the soname is not libbatchwright-storage.so.1")
endif()
