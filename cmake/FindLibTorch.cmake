# LibTorch from the folder that script/bootstrap fills, or from LIBTORCH_ROOT: the `torch` folder of an
# installed PyPI wheel, or an unpacked LibTorch archive.
#
# Targets: LibTorch::c10, LibTorch::CPU, and LibTorch::NCCL with DSPLAN_CUDA. PyTorch's own CMake package is
# not used: it requires the whole CUDA toolkit and adds all of it to every program.
set(LibTorch_wanted 2.15)

if(DEFINED ENV{XDG_CACHE_HOME})
  set(LibTorch_cache "$ENV{XDG_CACHE_HOME}")
else()
  set(LibTorch_cache "$ENV{HOME}/.cache")
endif()
if(DEFINED ENV{LIBTORCH_ROOT})
  set(LibTorch_default "$ENV{LIBTORCH_ROOT}")
else()
  set(LibTorch_default "${LibTorch_cache}/dsplan/libtorch-2.15.0")
endif()
set(LIBTORCH_ROOT "${LibTorch_default}" CACHE PATH "The folder that holds LibTorch's include/ and lib/")

# NVIDIA's parts: where script/bootstrap puts them, or beside the `torch` folder of an installed wheel.
set(LibTorch_nvidia "${LIBTORCH_ROOT}/nvidia" "${LIBTORCH_ROOT}/../nvidia")

function(LibTorch_find_library variable)
  set(folders "${LIBTORCH_ROOT}/lib")
  foreach(nvidia IN LISTS LibTorch_nvidia)
    list(APPEND folders "${nvidia}/nccl/lib" "${nvidia}/cu13/lib")
  endforeach()
  find_library(${variable} NAMES ${ARGN} NO_DEFAULT_PATH PATHS ${folders})
endfunction()

find_path(LibTorch_INCLUDE_DIR torch/csrc/autograd/variable.h PATHS "${LIBTORCH_ROOT}/include" NO_DEFAULT_PATH)
LibTorch_find_library(LibTorch_CPU_LIBRARY torch_cpu)
LibTorch_find_library(LibTorch_C10_LIBRARY c10)

set(LibTorch_VERSION "")
if(LibTorch_INCLUDE_DIR)
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT LibTorch_VERSION AND EXISTS "${LibTorch_INCLUDE_DIR}/${header}")
      file(STRINGS "${LibTorch_INCLUDE_DIR}/${header}" numbers REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
      string(REGEX MATCHALL "[0-9]+" numbers "${numbers}")
      string(REPLACE ";" "." LibTorch_VERSION "${numbers}")
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "Run script/bootstrap, or point LIBTORCH_ROOT at a LibTorch ${LibTorch_wanted}.")

if(LibTorch_FOUND AND NOT LibTorch_VERSION MATCHES "^2\\.15(\\.|$)" AND NOT DSPLAN_ALLOW_ANY_LIBTORCH)
  message(FATAL_ERROR
          "LibTorch in ${LIBTORCH_ROOT} is version ${LibTorch_VERSION}; this project is tested with "
          "${LibTorch_wanted} only. Run script/bootstrap and leave LIBTORCH_ROOT unset, or build with "
          "-DDSPLAN_ALLOW_ANY_LIBTORCH=ON at your own risk.")
endif()

if(LibTorch_FOUND AND NOT TARGET LibTorch::CPU)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES
    IMPORTED_LOCATION "${LibTorch_C10_LIBRARY}"
    # After the system's folders: LibTorch brings headers of a newer fmt, with which the system's spdlog does not
    # compile.
    INTERFACE_COMPILE_OPTIONS
      "SHELL:-idirafter ${LibTorch_INCLUDE_DIR};SHELL:-idirafter ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "FMT_HEADER_ONLY=1")

  add_library(LibTorch::CPU SHARED IMPORTED)
  set_target_properties(LibTorch::CPU PROPERTIES
    IMPORTED_LOCATION "${LibTorch_CPU_LIBRARY}"
    INTERFACE_LINK_LIBRARIES LibTorch::c10
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    # libtorch_cpu needs CUDA libraries that it finds by its own run path when a program starts.
    INTERFACE_LINK_OPTIONS "LINKER:--unresolved-symbols=ignore-in-shared-libs")
endif()

if(LibTorch_FOUND AND DSPLAN_CUDA AND NOT TARGET LibTorch::NCCL)
  LibTorch_find_library(LibTorch_CUDA_LIBRARY torch_cuda)
  LibTorch_find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda)
  LibTorch_find_library(LibTorch_CUDART_LIBRARY libcudart.so.13)
  LibTorch_find_library(LibTorch_NCCL_LIBRARY libnccl.so.2)
  list(TRANSFORM LibTorch_nvidia APPEND /nccl/include OUTPUT_VARIABLE nccl_includes)
  list(TRANSFORM LibTorch_nvidia APPEND /cu13/include OUTPUT_VARIABLE cuda_includes)
  find_path(LibTorch_NCCL_INCLUDE_DIR nccl.h PATHS ${nccl_includes} NO_DEFAULT_PATH)
  find_path(LibTorch_CUDART_INCLUDE_DIR cuda_runtime_api.h PATHS ${cuda_includes} NO_DEFAULT_PATH)
  foreach(part IN ITEMS CUDA_LIBRARY C10_CUDA_LIBRARY CUDART_LIBRARY NCCL_LIBRARY NCCL_INCLUDE_DIR
                        CUDART_INCLUDE_DIR)
    if(NOT LibTorch_${part})
      message(FATAL_ERROR "DSPLAN_CUDA is on, but LibTorch_${part} is not in ${LIBTORCH_ROOT} or the nvidia "
                          "folder beside it. Run script/bootstrap --cuda, or install torch 2.15.0 with the "
                          "NVIDIA packages that it asks for and point LIBTORCH_ROOT at it.")
    endif()
  endforeach()

  add_library(LibTorch::NCCL INTERFACE IMPORTED)
  target_include_directories(LibTorch::NCCL SYSTEM INTERFACE "${LibTorch_NCCL_INCLUDE_DIR}"
                                                             "${LibTorch_CUDART_INCLUDE_DIR}")
  target_compile_definitions(LibTorch::NCCL INTERFACE USE_C10D_NCCL)
  # Needed as a whole: loading libtorch_cuda is what registers the kernels of GPU tensors.
  target_link_libraries(LibTorch::NCCL INTERFACE LibTorch::CPU
    -Wl,--no-as-needed "${LibTorch_CUDA_LIBRARY}" -Wl,--as-needed
    "${LibTorch_C10_CUDA_LIBRARY}" "${LibTorch_CUDART_LIBRARY}" "${LibTorch_NCCL_LIBRARY}")
endif()
