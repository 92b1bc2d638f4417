# batchwright::client reads batches; batchwright::storage writes datasets and computes features.
if(CMAKE_VERSION VERSION_LESS 3.23)
  set(batchwright_FOUND FALSE)
  set(batchwright_NOT_FOUND_MESSAGE "found CMake ${CMAKE_VERSION}; needed: 3.23 or later, or pkg-config")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/batchwright-targets.cmake)
