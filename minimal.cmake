# The libraries of a minimal build, each static or of headers alone, under the names that the rooms
# link. What it leaves out is said in daemon/README.md.
# A distribution for small machines may have shared ones alone, for all its programs.
find_library(BATCHWRIGHT_ZMQ_LIBRARY NAMES libzmq.so libzmq.a NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
  PATHS ${BATCHWRIGHT_ZMQ_PREFIX}/lib ${BATCHWRIGHT_ZMQ_PREFIX}/lib64)
if(NOT BATCHWRIGHT_ZMQ_LIBRARY)
  message(FATAL_ERROR "BATCHWRIGHT_MINIMAL takes a libzmq of its own: found no lib/libzmq.a in "
    "BATCHWRIGHT_ZMQ_PREFIX, which is \"${BATCHWRIGHT_ZMQ_PREFIX}\"; tests/libraries minimal makes one")
endif()
set(BATCHWRIGHT_TESTS OFF)
set(BATCHWRIGHT_CUDA OFF)
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
add_compile_definitions(BATCHWRIGHT_MINIMAL BOOST_EXCEPTION_DISABLE)
# Type information of what is thrown, and of nothing else; exceptions of Boost as they are, not wrapped.
add_compile_options(-ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables -fno-rtti)
add_link_options(-Wl,--gc-sections)
# In one piece: 0.03 MiB less. GCC 12, optimising Boost.JSON so, warns of an array without elements.
add_link_options($<$<CXX_COMPILER_ID:GNU>:-flto-partition=one> $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overread>)
if(NOT BATCHWRIGHT_STATIC)  # whose programs would be linked with a shared libc by these
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
# Addresses that the loader has to add to, in a bit each: 0.2 MiB less. glibc reads that from 2.36 on.
include(CheckLinkerFlag)
check_linker_flag(CXX -Wl,-z,pack-relative-relocs BATCHWRIGHT_PACKS_RELOCATIONS)
if(BATCHWRIGHT_PACKS_RELOCATIONS)
  add_link_options(-Wl,-z,pack-relative-relocs)
endif()
# main() says how the daemon ends by what nothing catches. The C++ library's own way, which is in force
# before, has a demangler of 60 KiB.
set(CMAKE_EXE_LINKER_FLAGS
  "${CMAKE_EXE_LINKER_FLAGS} -Wl,--defsym=_ZN9__gnu_cxx27__verbose_terminate_handlerEv=abort")

# Of Debian's own archive no shared library can be made.
find_library(BATCHWRIGHT_LMDB_LIBRARY NAMES liblmdb.a NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
  PATHS ${BATCHWRIGHT_ZMQ_PREFIX}/lib)
find_library(BATCHWRIGHT_LMDB_LIBRARY NAMES liblmdb.a lmdb REQUIRED)
add_library(PkgConfig::LMDB INTERFACE IMPORTED)
target_link_libraries(PkgConfig::LMDB INTERFACE ${BATCHWRIGHT_LMDB_LIBRARY} Threads::Threads)

add_library(PkgConfig::ZMQ INTERFACE IMPORTED)
target_link_libraries(PkgConfig::ZMQ INTERFACE
  ${BATCHWRIGHT_ZMQ_LIBRARY} Threads::Threads)
target_compile_definitions(PkgConfig::ZMQ INTERFACE ZMQ_STATIC)
add_library(cppzmq INTERFACE IMPORTED)
target_link_libraries(cppzmq INTERFACE PkgConfig::ZMQ)

# fmt's code is in fmt_body. No number here is written in a locale's way, so no locales are linked.
add_compile_definitions(FMT_STATIC_THOUSANDS_SEPARATOR=',')
add_library(fmt::fmt INTERFACE IMPORTED)
add_library(fmt::fmt-header-only INTERFACE IMPORTED)
target_compile_definitions(fmt::fmt-header-only INTERFACE FMT_HEADER_ONLY=1)
add_library(spdlog::spdlog INTERFACE IMPORTED)
target_compile_definitions(spdlog::spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
# Numbers without the streams of the C++ library, whose locales are 0.4 MiB.
target_compile_definitions(tomlplusplus::tomlplusplus INTERFACE TOML_FLOAT_CHARCONV=1)
