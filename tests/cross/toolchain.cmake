# For a Debian root of another architecture, as tests/cross/run makes it:
#   BATCHWRIGHT_CROSS       arm64, armhf or riscv64, Debian's names
#   BATCHWRIGHT_CROSS_ROOT  the root, which has the libraries
#   BATCHWRIGHT_STATIC_PREFIX  those of tests/libraries static, if any; they come first
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES BATCHWRIGHT_CROSS BATCHWRIGHT_CROSS_ROOT
  BATCHWRIGHT_STATIC_PREFIX)
set(processor_arm64 aarch64)
set(processor_armhf arm)
set(processor_riscv64 riscv64)
set(triplet_arm64 aarch64-linux-gnu)
set(triplet_armhf arm-linux-gnueabihf)
set(triplet_riscv64 riscv64-linux-gnu)
if(NOT DEFINED triplet_${BATCHWRIGHT_CROSS})
  message(FATAL_ERROR "BATCHWRIGHT_CROSS is \"${BATCHWRIGHT_CROSS}\"; allowed: arm64, armhf, riscv64")
endif()
set(triplet ${triplet_${BATCHWRIGHT_CROSS}})

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${processor_${BATCHWRIGHT_CROSS}})
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_SYSROOT ${BATCHWRIGHT_CROSS_ROOT})
set(CMAKE_FIND_ROOT_PATH ${BATCHWRIGHT_STATIC_PREFIX} ${BATCHWRIGHT_CROSS_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${BATCHWRIGHT_CROSS_ROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${BATCHWRIGHT_CROSS_ROOT}/usr/lib/${triplet}/pkgconfig:${BATCHWRIGHT_CROSS_ROOT}/usr/share/pkgconfig)
# The root's libraries are of a later Debian, whose C++ library has what theirs refer to.
if(BATCHWRIGHT_CROSS STREQUAL riscv64)
  set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--allow-shlib-undefined)
  set(CMAKE_SHARED_LINKER_FLAGS_INIT -Wl,--allow-shlib-undefined)
endif()
