// Collective and point-to-point operations of one ordered set of ranks, on Gloo (CPU) or NCCL (CUDA).
//
// A communicator is a role ("tensor", "data" …) over a process group; it is cheap to copy, and roles over the
// same ranks share the group. Ranks inside it are group ranks: positions in `ranks()`. Tensors are
// contiguous. All members call the same operations in the same order; sends and receives match by (pair,
// tag), FIFO within a tag. A group of one rank performs nothing, allocates nothing and counts nothing.
//
// Errors: CommunicationError, from the call or from `PendingWork::wait`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/comm/communication_error.h"
#include "runtime/comm/traffic.h"

namespace runtime {

class ProcessGroup;

enum class Reduction : std::uint8_t { sum, max };

/// An operation under way. It keeps its tensors alive until `wait` returns, and no longer; until then their
/// contents are undefined.
class PendingWork {
 public:
  struct State;

  PendingWork();  ///< complete from the start
  explicit PendingWork(std::unique_ptr<State> state);
  PendingWork(PendingWork&&) noexcept;
  PendingWork& operator=(PendingWork&&) noexcept;
  ~PendingWork();

  /// Returns once the operation is complete; further calls return at once.
  void wait();
  bool pending() const { return state_ != nullptr; }

 private:
  std::unique_ptr<State> state_;
};

class Communicator {
 public:
  /// A group of the calling rank alone.
  explicit Communicator(std::string label, std::int64_t global_rank = 0);
  Communicator(std::string label, std::shared_ptr<ProcessGroup> group, std::shared_ptr<Traffic> traffic);

  const std::string& label() const { return label_; }
  std::int64_t rank() const { return rank_; }
  std::int64_t size() const { return static_cast<std::int64_t>(ranks_.size()); }
  /// Global ranks, in group order.
  const std::vector<std::int64_t>& ranks() const { return ranks_; }

  void all_reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum) const;
  /// `output` is `size()` inputs one after the other, in group order; it may hold `input` at its own place.
  void all_gather_into(const at::Tensor& output, const at::Tensor& input) const;
  void broadcast(const at::Tensor& tensor, std::int64_t root) const;
  /// Splits count rows of dim 0 for each peer; both empty: equal parts.
  void all_to_all(const at::Tensor& output, const at::Tensor& input,
                  const std::vector<std::int64_t>& output_splits = {},
                  const std::vector<std::int64_t>& input_splits = {}) const;
  void barrier() const;

  [[nodiscard]] PendingWork all_reduce_async(const at::Tensor& tensor,
                                             Reduction reduction = Reduction::sum) const;
  [[nodiscard]] PendingWork all_gather_into_async(const at::Tensor& output, const at::Tensor& input) const;
  /// Of a buffer of `size()` equal slices, without memory of its own: this rank's slice becomes the sum over
  /// the ranks, the other slices are undefined afterwards.
  [[nodiscard]] PendingWork reduce_scatter_in_place_async(const at::Tensor& buffer) const;
  /// Likewise: every rank has filled its own slice, and has all of them afterwards.
  [[nodiscard]] PendingWork all_gather_in_place_async(const at::Tensor& buffer) const;
  [[nodiscard]] PendingWork send(const at::Tensor& tensor, std::int64_t peer, int tag) const;
  [[nodiscard]] PendingWork receive(const at::Tensor& tensor, std::int64_t peer, int tag) const;

 private:
  std::string label_;
  std::vector<std::int64_t> ranks_;
  std::int64_t rank_ = 0;
  std::shared_ptr<ProcessGroup> group_;  ///< null in a group of one
  std::shared_ptr<Traffic> traffic_;
};

}  // namespace runtime
