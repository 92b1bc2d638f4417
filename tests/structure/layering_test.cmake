# Proves that layering.cmake finds what it is there to find: one small tree a sentence.
#   cmake -DSCRIPT=<layering.cmake> -DWORK=<scratch folder> -P layering_test.cmake
cmake_minimum_required(VERSION 3.25)

# run(RESULT OUTPUT FILES name text name text ...)
function(run result output)
  cmake_parse_arguments(ARG "" "" "FILES;LINKS" ${ARGN})
  file(REMOVE_RECURSE ${WORK})
  while(ARG_FILES)
    list(POP_FRONT ARG_FILES name text)
    file(WRITE ${WORK}/${name} "${text}\n")
  endwhile()
  string(REPLACE ";" "\n" links "${ARG_LINKS}")
  file(WRITE ${WORK}/links "${links}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK} -DLINKS=${WORK}/links -P ${SCRIPT}
    RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${result} ${code} PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

function(accepts sentence)
  run(code text ${ARGN})
  if(NOT code EQUAL 0)
    message(SEND_ERROR "layering: ${sentence}\n${text}")
  endif()
endfunction()

function(refuses sentence message)
  run(code text ${ARGN})
  string(FIND "${text}" "${message}" at)
  if(code EQUAL 0 OR at EQUAL -1)
    message(SEND_ERROR "layering: ${sentence}\nwanted: ${message}\ngot (${code}): ${text}")
  endif()
endfunction()

accepts("an arrow of the house through a front door passes"
  FILES daemon/assembly/a.cpp "#include \"storage/dataset/dataset.h\" // reads; sizes"
  LINKS "assembly: dataset formats Threads::Threads")
accepts("a room may include its own headers"
  FILES storage/dataset/a.cpp "#include \"storage/dataset/inner.h\"")
accepts("the command may look into every room"
  FILES client/command/a.cpp "#include \"daemon/planning/planning.h\"")
refuses("an include against the arrows fails" "dataset must not include planning"
  FILES storage/dataset/a.cpp "#include \"daemon/planning/planning.h\"")
refuses("an inner header of another room fails" "is not a front door of dataset"
  FILES daemon/assembly/a.cpp "#include \"storage/dataset/inner.h\"")
refuses("angle brackets hide nothing" "library must not include dataset"
  FILES client/library/a.cpp "#  include <storage/dataset/dataset.h>")
refuses("a generated header outside formats fails" "generated headers are for formats alone"
  FILES storage/dataset/a.cpp "#include \"batch_generated.h\"")
refuses("an include that is not rooted at the project fails" "is not rooted at the project"
  FILES storage/dataset/a.cpp "#include \"inner.h\"")
refuses("a second file with lmdb.h fails" "lmdb is included by more than one file of dataset"
  FILES storage/dataset/a.cpp "#include <lmdb.h>" storage/dataset/b.cpp "#include <lmdb.h>")
refuses("lmdb.h in another room fails" "<lmdb.h> belongs to dataset, not to stats"
  FILES daemon/stats/a.cpp "#include <lmdb.h>")
refuses("a link against the arrows fails" "library must not link dataset"
  FILES formats/a.h "#pragma once" LINKS "formats: " "library: formats dataset")
file(REMOVE_RECURSE ${WORK})
