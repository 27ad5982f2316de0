#include "runtime/comm/nccl_library.h"

#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include "runtime/comm/process_group.h"

namespace runtime {

std::shared_ptr<BackendFactory> make_nccl_factory(const CommunicationOptions& options) {
  // Found by the program's run path, and never unloaded: the kernels it registers are used until the end.
  // Global, since LibTorch looks its CUDA parts up in the whole process.
  void* library = dlopen(nccl_library_name, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw std::runtime_error(
        std::string("the plan is for GPUs, but the CUDA back end does not load: ") + dlerror() +
        "; build with -DDSPLAN_CUDA=ON and a LibTorch that has its CUDA libraries, or plan "
        "for CPUs");
  }
  const auto make = reinterpret_cast<MakeNcclFactory>(dlsym(library, nccl_library_entry));
  if (make == nullptr) {
    throw std::runtime_error(std::string(nccl_library_name) + " is not of this dsrun: it has no " +
                             nccl_library_entry);
  }
  return std::shared_ptr<BackendFactory>(make(options));
}

}  // namespace runtime
