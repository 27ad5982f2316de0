// The names of cuSOLVER that ATen's CUDA headers mention.
#pragma once

enum cusolverStatus_t : int;
