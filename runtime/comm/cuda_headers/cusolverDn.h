// The names of cuSOLVER that ATen's CUDA headers mention.
#pragma once

#include "cusolver_common.h"

using cusolverDnHandle_t = struct cusolverDnContext*;
