// The name of cuBLASLt that ATen's CUDA headers mention.
#pragma once

using cublasLtHandle_t = struct cublasLtContext*;
