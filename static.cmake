# BATCHWRIGHT_STATIC: programs that need no library of the machine they run on, libc included, and
# libraries for other programs that need its libc and libgcc_s alone.
set(BATCHWRIGHT_TESTS OFF)
set(BATCHWRIGHT_CUDA OFF)  # CUDA's library is loaded
add_library(static_program OBJECT formats/base/kernel/own_libc.cpp)  # what makes a program static
target_link_libraries(static_program PRIVATE project_options)
target_link_options(static_program INTERFACE -static-pie)
set(BATCHWRIGHT_LIBRARY_LINK_OPTIONS -static-libstdc++)
if(BATCHWRIGHT_MINIMAL)
  return()  # whose libraries are static anyway
endif()
if(NOT EXISTS ${BATCHWRIGHT_STATIC_PREFIX}/lib/libzmq.a)
  message(FATAL_ERROR "BATCHWRIGHT_STATIC takes static libraries: found no lib/libzmq.a in "
    "BATCHWRIGHT_STATIC_PREFIX, which is \"${BATCHWRIGHT_STATIC_PREFIX}\"; tests/libraries static "
    "makes them")
endif()
list(PREPEND CMAKE_PREFIX_PATH ${BATCHWRIGHT_STATIC_PREFIX})  # has fmt and spdlog with files for CMake

# static_library(TARGET ARCHIVE...): of the prefix, or of the system. Each takes from those after it.
function(static_library target)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${BATCHWRIGHT_STATIC_PREFIX}/include)
  foreach(name IN LISTS ARGN)
    find_library(${name}_ARCHIVE lib${name}.a REQUIRED)
    target_link_libraries(${target} INTERFACE ${${name}_ARCHIVE})
  endforeach()
  target_link_libraries(${target} INTERFACE Threads::Threads)
endfunction()
static_library(PkgConfig::LMDB lmdb)
static_library(PkgConfig::ZMQ zmq sodium)
static_library(PkgConfig::SNDFILE sndfile FLAC vorbisenc vorbis opus ogg)
static_library(PkgConfig::MPG123 mpg123)
static_library(PkgConfig::SOXR soxr)
static_library(PkgConfig::ISAL isal)
static_library(PkgConfig::ARCHIVE archive z)
target_compile_definitions(PkgConfig::ZMQ INTERFACE ZMQ_STATIC)
target_compile_definitions(PkgConfig::ARCHIVE INTERFACE LIBARCHIVE_STATIC)
add_library(cppzmq INTERFACE IMPORTED)
target_link_libraries(cppzmq INTERFACE PkgConfig::ZMQ)
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)  # of headers alone
