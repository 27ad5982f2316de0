# dsplan_nccl_library(): libdsrun_nccl, which dsrun loads when a plan is for GPUs. Linking it proves that every
# name it uses is in LibTorch's CUDA libraries and NCCL; it needs no GPU.
function(dsplan_nccl_library)
  add_library(dsrun_nccl MODULE "${PROJECT_SOURCE_DIR}/runtime/comm/nccl_backend.cpp")
  target_include_directories(dsrun_nccl PRIVATE "${PROJECT_SOURCE_DIR}"
                                                "${PROJECT_SOURCE_DIR}/runtime/comm/cuda_headers")
  target_link_libraries(dsrun_nccl PRIVATE LibTorch::NCCL dsplan_warnings)
  target_link_options(dsrun_nccl PRIVATE LINKER:--no-undefined)
  install(TARGETS dsrun_nccl LIBRARY DESTINATION lib)
endfunction()
