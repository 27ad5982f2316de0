# Language level, build type, warnings, sanitizers, and the tools that make building faster.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
# Programs find their own libraries from where they lie, and LibTorch where it was at configure time.
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Warnings as errors for our code; those that are off misfire in the standard library of GCC 12.
add_library(dsplan_warnings INTERFACE)
target_compile_options(dsplan_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(dsplan_warnings INTERFACE -Wno-restrict -Wno-maybe-uninitialized
                                                   -Wno-missing-field-initializers)
endif()

# One section for each function lets the linker drop what a program does not use of static libraries.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(LINKER:--gc-sections LINKER:--as-needed)

if(DSPLAN_SANITIZER)
  add_compile_options(-fsanitize=${DSPLAN_SANITIZER} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${DSPLAN_SANITIZER})
  if(DSPLAN_SANITIZER STREQUAL "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()

find_program(DSPLAN_MOLD mold)
if(DSPLAN_MOLD)
  # Debian's mold 1.10 may lay the read-only-after-relocation segment on no page boundary, and such a program does
  # not start ("cannot apply additional memory protection after relocation").
  add_link_options(-fuse-ld=mold -Wl,-z,norelro)
endif()

# Paths relative to the source tree, so that several checkouts share what one of them has compiled.
find_program(DSPLAN_CCACHE ccache)
if(DSPLAN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${DSPLAN_CCACHE})
endif()
