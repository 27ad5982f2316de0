// The names of cuBLAS that ATen's CUDA headers mention.
#pragma once

using cublasHandle_t = struct cublasContext*;
enum cublasStatus_t : int;
