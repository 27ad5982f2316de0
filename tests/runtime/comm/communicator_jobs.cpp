#include "tests/runtime/comm/communicator_jobs.h"

#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "runtime/comm/communicator.h"
#include "runtime/mesh/mesh.h"
#include "runtime/monitor/tensor_memory.h"

namespace runtime {
namespace {

Communicator world(WorkerContext& context) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t rank = 0; rank < context.ranks; ++rank) ranks.push_back(rank);
  return context.groups.communicator("world", ranks);
}

/// "" where both are equal in every element.
std::string difference(const std::string& what, const at::Tensor& seen, const at::Tensor& correct) {
  if (seen.sizes() == correct.sizes() && at::equal(seen.to(at::kDouble), correct.to(at::kDouble))) return {};
  std::ostringstream text;
  text << what << " of " << c10::toString(seen.scalar_type()) << " gave " << seen << " not " << correct
       << "\n";
  return text.str();
}

/// Small integers: exact in every dtype, in any order of summation.
std::string every_collective(WorkerContext& context, const std::string& /*request*/) {
  const Communicator group = world(context);
  const std::int64_t n = group.size();
  const std::int64_t me = group.rank();
  std::string wrong;
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const auto options = at::TensorOptions(dtype);
    const at::Tensor mine = at::arange(2 * n, options) + static_cast<double>(me);
    const at::Tensor sum =
        at::arange(2 * n, options) * static_cast<double>(n) + static_cast<double>(n * (n - 1) / 2);

    at::Tensor reduced = mine.clone();
    group.all_reduce(reduced);
    wrong += difference("all_reduce sum", reduced, sum);
    reduced = mine.clone();
    group.all_reduce(reduced, Reduction::max);
    wrong += difference("all_reduce max", reduced, at::arange(2 * n, options) + static_cast<double>(n - 1));

    at::Tensor buffer = mine.clone();
    group.reduce_scatter_in_place_async(buffer).wait();
    const at::Tensor slice = buffer.narrow(0, 2 * me, 2).clone();
    wrong += difference("reduce_scatter", slice, sum.narrow(0, 2 * me, 2));

    at::Tensor gathered = at::zeros({2 * n}, options);
    group.all_gather_into(gathered, slice);
    wrong += difference("all_gather", gathered, sum);
    gathered.zero_();
    gathered.narrow(0, 2 * me, 2).copy_(slice);
    group.all_gather_into(gathered, gathered.narrow(0, 2 * me, 2));
    wrong += difference("all_gather in place", gathered, sum);

    buffer = at::zeros({2 * n}, options);
    buffer.narrow(0, 2 * me, 2).copy_(slice);
    group.all_gather_in_place_async(buffer).wait();
    wrong += difference("all_gather of one buffer", buffer, sum);

    at::Tensor told = me == n - 1 ? at::full({3}, 7.0, options) : at::zeros({3}, options);
    group.broadcast(told, n - 1);
    wrong += difference("broadcast", told, at::full({3}, 7.0, options));

    at::Tensor exchanged = at::zeros({n}, options);
    group.all_to_all(exchanged, at::arange(n, options) + static_cast<double>(10 * me));
    wrong += difference("all_to_all", exchanged, at::arange(n, options) * 10.0 + static_cast<double>(me));
  }
  return wrong;
}

/// How often a collective's tensor, or memory that the collective took for itself, outlived the wait for it.
std::string memory_after_wait(WorkerContext& context, const std::string& /*request*/) {
  install_counting_allocator();
  const Communicator group = world(context);
  const std::vector<std::function<PendingWork(const at::Tensor&)>> collectives{
      [&](const at::Tensor& tensor) { return group.all_reduce_async(tensor); },
      [&](const at::Tensor& tensor) { return group.reduce_scatter_in_place_async(tensor); },
      [&](const at::Tensor& tensor) { return group.all_gather_in_place_async(tensor); },
      [&](const at::Tensor& tensor) {
        return group.all_gather_into_async(tensor, tensor.narrow(0, 0, 256).clone());
      }};
  int outlived = 0;
  for (int repetition = 0; repetition < 300; ++repetition)
    for (const auto& collective : collectives) {
      const std::int64_t before = tensor_memory().current_bytes;
      collective(at::zeros({256 * group.size()}, at::kFloat)).wait();
      if (tensor_memory().current_bytes > before) ++outlived;
    }
  return std::to_string(outlived);
}

std::string messages_out_of_order(WorkerContext& context, const std::string& /*request*/) {
  const Communicator group = world(context);
  const std::int64_t next = (group.rank() + 1) % group.size();
  const std::int64_t previous = (group.rank() + group.size() - 1) % group.size();
  const at::Tensor one = at::full({4}, static_cast<double>(group.rank()), at::kFloat);
  const at::Tensor two = one + 100.0;
  PendingWork first = group.send(one, next, 1);
  PendingWork second = group.send(two, next, 2);
  const at::Tensor got_one = at::zeros({4}, at::kFloat);
  const at::Tensor got_two = at::zeros({4}, at::kFloat);
  PendingWork late = group.receive(got_two, previous, 2);
  PendingWork early = group.receive(got_one, previous, 1);
  for (PendingWork* work : {&late, &early, &first, &second}) work->wait();
  const at::Tensor correct = at::full({4}, static_cast<double>(previous), at::kFloat);
  return difference("tag 1", got_one, correct) + difference("tag 2", got_two, correct + 100.0);
}

std::string traffic_of_a_step(WorkerContext& context, const std::string& /*request*/) {
  const Communicator group = world(context);
  Traffic& traffic = context.groups.traffic();
  traffic.reset();
  traffic.trace(true);
  group.all_reduce(at::zeros({100}, at::kFloat));
  group.all_reduce(at::zeros({100}, at::kBFloat16));
  group.reduce_scatter_in_place_async(at::zeros({25 * group.size()}, at::kFloat)).wait();
  Communicator("alone").all_reduce(at::zeros({100}, at::kFloat));
  std::ostringstream text;
  for (const auto& [key, count] : traffic.counts())
    text << key.group << " " << specs::name_of(key.op) << " " << c10::toString(key.dtype) << " "
         << count.calls << " " << count.payload_bytes << " " << count.wire_bytes << "\n";
  text << "traced " << traffic.calls().size();
  traffic.trace(false);
  traffic.reset();
  return text.str();
}

std::string skipped_all_reduce(WorkerContext& context, const std::string& /*request*/) {
  const Communicator group = world(context);
  Traffic& traffic = context.groups.traffic();
  int seen = 0;
  traffic.skip = [&](const CommunicationCall& call) {
    return call.op == CommunicationOp::all_reduce && seen++ == 1;
  };
  const at::Tensor kept = at::ones({1}, at::kFloat);
  const at::Tensor skipped = at::ones({1}, at::kFloat);
  group.all_reduce(kept);
  group.all_reduce(skipped);
  traffic.skip = nullptr;
  return std::to_string(kept.item<float>()) + " " + std::to_string(skipped.item<float>());
}

std::string absent_peer(WorkerContext& context, const std::string& /*request*/) {
  const Communicator group = world(context);
  group.all_reduce(at::ones({1}, at::kFloat));
  if (group.rank() == 1) return "absent";
  try {
    group.all_reduce(at::ones({1}, at::kFloat));
  } catch (const CommunicationError& error) {
    return (error.failure() == CommunicationFailure::timeout ? "timeout: " : "other: ") +
           std::string(error.what());
  }
  return "no error";
}

std::string die(WorkerContext& context, const std::string& /*request*/) {
  const Communicator group = world(context);
  group.all_reduce(at::ones({1}, at::kFloat));
  if (group.rank() == 1) std::_Exit(7);
  group.all_reduce(at::ones({1}, at::kFloat));
  return "no error";
}

/// Builds the mesh and sums ranks over each axis: the sums name the members.
std::string mesh_sums(WorkerContext& context, const std::string& request) {
  std::istringstream degrees(request);
  specs::RegularPlacement regular;
  degrees >> regular.tensor >> regular.pipeline >> regular.data;
  const specs::Placement placement = specs::regular_placement(regular, 4);
  const Mesh mesh(placement, context.groups);
  std::ostringstream text;
  for (const auto kind : {MeshGroup::tensor, MeshGroup::data, MeshGroup::pipeline, MeshGroup::embedding,
                          MeshGroup::model, MeshGroup::world}) {
    const at::Tensor sum = at::full({1}, static_cast<double>(mesh.rank()), at::kFloat);
    mesh.group(kind).all_reduce(sum);
    text << sum.item<float>() << " ";
  }
  text << "groups " << context.groups.cached();
  return text.str();
}

}  // namespace

WorkerJobs communicator_jobs() {
  return {{"every_collective", every_collective},
          {"memory_after_wait", memory_after_wait},
          {"messages_out_of_order", messages_out_of_order},
          {"traffic_of_a_step", traffic_of_a_step},
          {"skipped_all_reduce", skipped_all_reduce},
          {"absent_peer", absent_peer},
          {"die", die},
          {"mesh_sums", mesh_sums}};
}

}  // namespace runtime
