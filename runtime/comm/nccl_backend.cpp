// The one source that sees ProcessGroupNCCL; a library of its own, built with DSPLAN_CUDA.
#include <type_traits>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "runtime/comm/native_store.h"
#include "runtime/comm/nccl_library.h"
#include "runtime/comm/process_group.h"

namespace runtime {
namespace {

class NcclFactory final : public BackendFactory {
 public:
  explicit NcclFactory(const CommunicationOptions& options) : timeout_(options.timeout) {}

  c10::intrusive_ptr<c10d::Backend> make(const NativeStore& store, const std::string& name, std::int64_t rank,
                                         std::int64_t size) override {
    auto options = c10d::ProcessGroupNCCL::Options::create();
    options->timeout = timeout_;
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(
        c10::make_intrusive<c10d::PrefixStore>(name, store.store), static_cast<int>(rank),
        static_cast<int>(size), std::move(options));
  }

 private:
  std::chrono::milliseconds timeout_;
};

}  // namespace

}  // namespace runtime

extern "C" runtime::BackendFactory* dsrun_make_nccl_factory(const runtime::CommunicationOptions& options) {
  return new runtime::NcclFactory(options);
}

static_assert(std::is_same_v<decltype(&dsrun_make_nccl_factory), runtime::MakeNcclFactory>);
