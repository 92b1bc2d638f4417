# Fails when a library shows a symbol that is not of its C ABI, or needs a library it must not.
#   cmake -DLIBRARY=FILE -DNM=nm -DREADELF=readelf -DSONAME=libx.so.1 -DVERSION=X_1
#         -DSYMBOL=REGEX -DAT_LEAST=N -DNEEDS=REGEX -P exports.cmake
# NEEDS: libraries it may need beside those of the compiler, as liba|libb.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND ${NM} -D --defined-only ${LIBRARY} OUTPUT_VARIABLE symbols
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
foreach(line IN LISTS symbols)
  if(NOT line MATCHES " T ${SYMBOL}@@${VERSION}$" AND NOT line MATCHES " A ${VERSION}(@@${VERSION})?$")
    message(SEND_ERROR "exported: ${line}")
  endif()
endforeach()
list(LENGTH symbols count)
if(count LESS AT_LEAST)
  message(SEND_ERROR "only ${count} symbols are exported")
endif()

execute_process(COMMAND ${READELF} -d ${LIBRARY} OUTPUT_VARIABLE entries
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "Shared library: \\[[^]]+" needed "${entries}")
foreach(line IN LISTS needed)
  if(NOT line MATCHES "\\[(${NEEDS}|libstdc\\+\\+|libgcc_s|libc|libm|ld-linux.*|lib[a-z]*san)\\.so")
    message(SEND_ERROR "needed: ${line}")
  endif()
endforeach()
string(FIND "${entries}" "soname: [${SONAME}]" place)
if(place EQUAL -1)
  message(SEND_ERROR "the soname is not ${SONAME}")
endif()
