#include "runtime/comm/communicator.h"

#include <algorithm>
#include <exception>
#include <type_traits>
#include <utility>

#include <ATen/ops/from_blob.h>

#include "runtime/comm/process_group.h"

namespace runtime {

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

CommunicationFailure classify(const std::string& message) {
  const auto contains = [&](std::string_view part) { return message.find(part) != std::string::npos; };
  if (contains("Timed out") || contains("timed out") || contains("timeout"))
    return CommunicationFailure::timeout;
  if (contains("onnection") || contains("Broken pipe") || contains("socket") || contains("aborted"))
    return CommunicationFailure::connection_lost;
  return CommunicationFailure::other;
}

namespace {

/// Everything an error report needs to know of a call.
struct CallSite {
  std::shared_ptr<ProcessGroup> group;
  std::string label;
  CommunicationOp op = CommunicationOp::all_reduce;
  std::int64_t sequence = 0;

  [[noreturn]] void fail(const std::string& detail) const {
    throw CommunicationError(classify(detail), label, std::string(specs::name_of(op)), sequence, group->ranks,
                             detail);
  }
};

std::int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
}

bool is_gloo(const c10d::Backend& backend) { return backend.getBackendName() == "gloo"; }

using Tensors = std::vector<at::Tensor>;

/// Tensors over the same memory that keep `owners` alive instead of it: it is released when `owners` are
/// cleared, whoever still has one of these. Gloo's threads drop theirs some time after the work is done.
Tensors lend(const std::shared_ptr<Tensors>& owners) {
  Tensors lent;
  for (const at::Tensor& owner : *owners)
    lent.push_back(at::from_blob(
        owner.data_ptr(), owner.sizes(), [owners](void*) {}, owner.options()));
  return lent;
}

at::Tensor slice(const at::Tensor& buffer, std::int64_t index, std::int64_t slices) {
  const std::int64_t length = buffer.numel() / slices;
  return buffer.view({-1}).narrow(0, index * length, length);
}

c10d::ReduceOp native(Reduction reduction) {
  return reduction == Reduction::max ? c10d::ReduceOp::MAX : c10d::ReduceOp::SUM;
}

}  // namespace

using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

struct PendingWork::State {
  CallSite site;
  std::shared_ptr<Tensors> owners;  ///< of the memory; alive until the work is done
  Tensors tensors;                  ///< what the back end works on
  Works works;
};

PendingWork::PendingWork() = default;
PendingWork::PendingWork(std::unique_ptr<State> state) : state_(std::move(state)) {}
PendingWork::PendingWork(PendingWork&&) noexcept = default;
PendingWork& PendingWork::operator=(PendingWork&&) noexcept = default;
PendingWork::~PendingWork() = default;

void PendingWork::wait() {
  if (!state_) return;
  const std::unique_ptr<State> state = std::move(state_);
  try {
    for (const auto& work : state->works) work->wait();
    state->owners->clear();
  } catch (const std::exception& error) {
    state->site.fail(first_line(error));
  }
}

namespace {

/// Records the call, then starts it; nothing is started where fault injection skips it.
template <class Start>
PendingWork launch(const std::shared_ptr<ProcessGroup>& group, Traffic& traffic,
                   const CommunicationCall& call, Tensors tensors, Start start) {
  CallSite site{group, call.group, call.op, group->started++};
  traffic.record(call);
  if (traffic.skip && traffic.skip(call)) return {};
  auto state = std::make_unique<PendingWork::State>();
  state->owners = std::make_shared<Tensors>(std::move(tensors));
  state->tensors = is_gloo(*group->backend) ? lend(state->owners) : *state->owners;
  try {
    if constexpr (std::is_same_v<decltype(start(*group->backend, state->tensors)), Works>)
      state->works = start(*group->backend, state->tensors);
    else
      state->works.push_back(start(*group->backend, state->tensors));
  } catch (const std::exception& error) {
    site.fail(first_line(error));
  }
  state->site = std::move(site);
  return PendingWork(std::move(state));
}

}  // namespace

Communicator::Communicator(std::string label, std::int64_t global_rank)
    : label_(std::move(label)), ranks_{global_rank} {}

Communicator::Communicator(std::string label, std::shared_ptr<ProcessGroup> group,
                           std::shared_ptr<Traffic> traffic)
    : label_(std::move(label)),
      ranks_(group->ranks),
      rank_(group->rank),
      group_(std::move(group)),
      traffic_(std::move(traffic)) {}

PendingWork Communicator::all_reduce_async(const at::Tensor& tensor, Reduction reduction) const {
  if (!group_) return {};
  const CommunicationCall call{label_, CommunicationOp::all_reduce, tensor.scalar_type(), bytes_of(tensor),
                               size()};
  return launch(group_, *traffic_, call, {tensor}, [&](c10d::Backend& backend, auto& tensors) {
    c10d::AllreduceOptions options;
    options.reduceOp = native(reduction);
    return backend.allreduce(tensors, options);
  });
}

PendingWork Communicator::all_gather_into_async(const at::Tensor& output, const at::Tensor& input) const {
  const at::Tensor mine = slice(output, rank_, size());
  if (mine.data_ptr() != input.data_ptr()) mine.copy_(input.view({-1}));
  return all_gather_in_place_async(output);
}

PendingWork Communicator::reduce_scatter_in_place_async(const at::Tensor& buffer) const {
  if (!group_) return {};
  const CommunicationCall call{label_, CommunicationOp::reduce_scatter, buffer.scalar_type(),
                               bytes_of(buffer), size()};
  return launch(group_, *traffic_, call, {buffer}, [&](c10d::Backend& backend, auto& tensors) {
    // Gloo's own reduce-scatter is an all-reduce of a copy.
    if (is_gloo(backend)) return backend.allreduce(tensors);
    at::Tensor mine = slice(tensors[0], rank_, size());
    return backend.reduce_scatter_single(mine, tensors[0]);
  });
}

PendingWork Communicator::all_gather_in_place_async(const at::Tensor& buffer) const {
  if (!group_) return {};
  const CommunicationCall call{label_, CommunicationOp::all_gather, buffer.scalar_type(), bytes_of(buffer),
                               size()};
  return launch(group_, *traffic_, call, {buffer}, [&](c10d::Backend& backend, auto& tensors) {
    Works works;
    if (!is_gloo(backend)) {
      at::Tensor mine = slice(tensors[0], rank_, size());
      works.push_back(backend.all_gather_single(tensors[0], mine));
      return works;
    }
    // Gloo's own all-gather goes through another buffer of all slices.
    for (std::int64_t root = 0; root < size(); ++root) {
      std::vector<at::Tensor> one{slice(tensors[0], root, size())};
      c10d::BroadcastOptions options;
      options.rootRank = root;
      works.push_back(backend.broadcast(one, options));
    }
    return works;
  });
}

PendingWork Communicator::send(const at::Tensor& tensor, std::int64_t peer, int tag) const {
  if (!group_) return {};
  const CommunicationCall call{label_, CommunicationOp::send, tensor.scalar_type(), bytes_of(tensor), size(),
                               peer};
  return launch(group_, *traffic_, call, {tensor}, [&](c10d::Backend& backend, auto& tensors) {
    return backend.send(tensors, static_cast<int>(peer), tag);
  });
}

PendingWork Communicator::receive(const at::Tensor& tensor, std::int64_t peer, int tag) const {
  if (!group_) return {};
  const CommunicationCall call{
      label_, CommunicationOp::receive, tensor.scalar_type(), bytes_of(tensor), size(), peer};
  return launch(group_, *traffic_, call, {tensor}, [&](c10d::Backend& backend, auto& tensors) {
    return backend.recv(tensors, static_cast<int>(peer), tag);
  });
}

void Communicator::all_reduce(const at::Tensor& tensor, Reduction reduction) const {
  all_reduce_async(tensor, reduction).wait();
}

void Communicator::all_gather_into(const at::Tensor& output, const at::Tensor& input) const {
  all_gather_into_async(output, input).wait();
}

void Communicator::broadcast(const at::Tensor& tensor, std::int64_t root) const {
  if (!group_) return;
  const CommunicationCall call{
      label_, CommunicationOp::broadcast, tensor.scalar_type(), bytes_of(tensor), size(), root};
  launch(group_, *traffic_, call, {tensor}, [&](c10d::Backend& backend, auto& tensors) {
    c10d::BroadcastOptions options;
    options.rootRank = root;
    return backend.broadcast(tensors, options);
  }).wait();
}

void Communicator::all_to_all(const at::Tensor& output, const at::Tensor& input,
                              const std::vector<std::int64_t>& output_splits,
                              const std::vector<std::int64_t>& input_splits) const {
  if (!group_) {
    output.copy_(input);
    return;
  }
  const CommunicationCall call{label_, CommunicationOp::all_to_all, input.scalar_type(), bytes_of(input),
                               size()};
  launch(group_, *traffic_, call, {output, input}, [&](c10d::Backend& backend, auto& tensors) {
    std::vector<std::int64_t> out_rows = output_splits;
    std::vector<std::int64_t> in_rows = input_splits;
    return backend.all_to_all_single(tensors[0], tensors[1], out_rows, in_rows);
  }).wait();
}

void Communicator::barrier() const {
  if (!group_) return;
  const CommunicationCall call{label_, CommunicationOp::barrier, c10::ScalarType::Byte, 0, size()};
  launch(group_, *traffic_, call, {}, [](c10d::Backend& backend, auto&) { return backend.barrier(); }).wait();
}

}  // namespace runtime
