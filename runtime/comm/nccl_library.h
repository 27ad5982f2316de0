// The one function of the NCCL back end's library, which dsrun loads when a plan is for GPUs: libtorch_cuda
// and what it needs are missing on a machine without GPUs, and dsrun must start there too.
#pragma once

namespace runtime {

class BackendFactory;
struct CommunicationOptions;

inline constexpr char nccl_library_name[] = "libdsrun_nccl.so";
inline constexpr char nccl_library_entry[] = "dsrun_make_nccl_factory";

/// The entry's type. The caller owns the result. Errors: exceptions, which pass through.
using MakeNcclFactory = BackendFactory* (*)(const CommunicationOptions&);

}  // namespace runtime
