// The names of cuSPARSE that ATen's CUDA headers mention.
#pragma once

using cusparseHandle_t = struct cusparseContext*;
enum cusparseStatus_t : int;
