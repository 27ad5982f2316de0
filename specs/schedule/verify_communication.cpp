#include "specs/schedule/verify_communication.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace specs {
namespace {

/// A transfer into `stage`: of an activation from the stage before, or of a gradient from the one after.
struct Message {
  bool gradient = false;
  bool reshard = false;
  std::int32_t stage = 0;
  std::int32_t micro_batch = 0;
  auto operator<=>(const Message&) const = default;

  std::int32_t from() const { return gradient ? stage + 1 : stage - 1; }
};

enum class Role { none, send, receive, reshard };

Role role_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::send_activation:
    case ActionKind::send_gradient:
      return Role::send;
    case ActionKind::receive_activation:
    case ActionKind::receive_gradient:
      return Role::receive;
    case ActionKind::reshard_activation:
    case ActionKind::reshard_gradient:
      return Role::reshard;
    default:
      return Role::none;
  }
}

Message message_of(const Action& action) {
  switch (action.kind) {
    case ActionKind::send_activation:
      return {false, false, action.stage + 1, action.micro_batch};
    case ActionKind::send_gradient:
      return {true, false, action.stage - 1, action.micro_batch};
    case ActionKind::receive_gradient:
      return {true, false, action.stage, action.micro_batch};
    case ActionKind::reshard_activation:
      return {false, true, action.stage, action.micro_batch};
    case ActionKind::reshard_gradient:
      return {true, true, action.stage, action.micro_batch};
    default:
      return {false, false, action.stage, action.micro_batch};
  }
}

std::string text_of(const Message& message) {
  return fmt::format("{} of micro-batch {} into stage {}", message.gradient ? "gradient" : "activation",
                     message.micro_batch, message.stage);
}

using Channel = std::pair<std::size_t, std::size_t>;  ///< from rank, to rank

class CommunicationCheck {
 public:
  explicit CommunicationCheck(const Schedule& schedule) : schedule_(schedule) {}

  std::optional<Violation> run() {
    if (!has_transfers()) return check_rank_locally(false);
    if (auto violation = check_rank_locally(true)) return violation;
    if (auto violation = check_channels()) return violation;
    for (bool buffered : {true, false})
      if (auto violation = check_deadlock(buffered)) return violation;
    return std::nullopt;
  }

 private:
  std::size_t rank_of(std::int32_t stage) const {
    return static_cast<std::size_t>(schedule_.rank_of_stage(stage));
  }
  bool crosses(std::int32_t from, std::int32_t to) const { return rank_of(from) != rank_of(to); }

  bool has_transfers() const {
    for (const auto& actions : schedule_.rank_actions)
      for (const Action& action : actions)
        if (role_of(action.kind) != Role::none) return true;
    return false;
  }

  /// State of one rank while its list is read from front to back.
  struct Local {
    std::size_t rank = 0;
    std::set<std::tuple<ActionKind, std::int32_t, std::int32_t>> done;
    std::map<std::int32_t, std::int32_t> gradients;  ///< complete ones, by stage
    std::map<std::int32_t, bool> gathered;  ///< stages that use gathers, and whether they are whole now
  };

  static bool did(const Local& local, ActionKind kind, std::int32_t stage, std::int32_t micro_batch) {
    return local.done.contains({kind, stage, micro_batch});
  }
  static bool did_gradient(const Local& local, std::int32_t stage, std::int32_t micro_batch) {
    return did(local, ActionKind::backward, stage, micro_batch) ||
           did(local, ActionKind::input_gradient, stage, micro_batch);
  }

  std::optional<Violation> check_rank_locally(bool transfers) const {
    const std::set<std::int32_t> gathering = stages_with(ActionKind::gather_parameters);
    for (std::size_t rank = 0; rank < schedule_.rank_actions.size(); ++rank) {
      Local local{.rank = rank, .done = {}, .gradients = {}, .gathered = {}};
      for (std::int32_t stage : gathering) local.gathered[stage] = false;
      const std::vector<Action>& actions = schedule_.rank_actions[rank];
      for (std::size_t index = 0; index < actions.size(); ++index) {
        const Action& action = actions[index];
        std::string broken = broken_rule(local, action, transfers);
        if (!broken.empty()) return Violation{rank, index, std::move(broken)};
        if (!local.done.insert({action.kind, action.stage, action.micro_batch}).second &&
            !may_repeat(action.kind))
          return Violation{rank, index, "stands twice"};
        if (action.kind == ActionKind::backward || action.kind == ActionKind::weight_gradient)
          ++local.gradients[action.stage];
      }
      if (auto violation = check_end_of_rank(local, rank)) return violation;
    }
    return check_pairs_present(transfers);
  }

  /// A gather for the forward and one for the backward of the same micro-batch.
  static bool may_repeat(ActionKind kind) {
    return kind == ActionKind::gather_parameters || kind == ActionKind::release_parameters;
  }

  std::string broken_rule(Local& local, const Action& action, bool transfers) const {
    switch (action.kind) {
      case ActionKind::forward:
      case ActionKind::backward:
      case ActionKind::input_gradient:
        return broken_compute(local, action, transfers);
      case ActionKind::send_activation:
      case ActionKind::send_gradient:
      case ActionKind::receive_activation:
      case ActionKind::receive_gradient:
      case ActionKind::reshard_activation:
      case ActionKind::reshard_gradient:
        return broken_transfer(local, action);
      case ActionKind::reduce_gradients:
      case ActionKind::reduce_tied:
        return broken_reduction(local, action);
      case ActionKind::gather_parameters:
        if (std::exchange(local.gathered[action.stage], true)) return "gathers what is whole already";
        return {};
      case ActionKind::release_parameters:
        if (!std::exchange(local.gathered[action.stage], false)) return "releases what was not gathered";
        return {};
      case ActionKind::weight_gradient:
        return {};
    }
    return {};
  }

  std::string broken_compute(const Local& local, const Action& action, bool transfers) const {
    const auto gathered = local.gathered.find(action.stage);
    if (gathered != local.gathered.end() && !gathered->second) return "the parameters are not gathered";
    if (!transfers) return {};
    const bool forward = action.kind == ActionKind::forward;
    const ActionKind receive = forward ? ActionKind::receive_activation : ActionKind::receive_gradient;
    const ActionKind reshard = forward ? ActionKind::reshard_activation : ActionKind::reshard_gradient;
    const std::int32_t from = forward ? action.stage - 1 : action.stage + 1;
    if (from < 0 || from >= schedule_.stages()) return {};
    if (did(local, receive, action.stage, action.micro_batch) ||
        did(local, reshard, action.stage, action.micro_batch))
      return {};
    if (!crosses(from, action.stage) && !stages_with(reshard).contains(action.stage)) return {};
    return fmt::format("its {} is not received before", forward ? "activation" : "gradient");
  }

  std::string broken_transfer(const Local& local, const Action& action) const {
    const Message message = message_of(action);
    const std::int32_t from = message.from();
    const Role role = role_of(action.kind);
    if (message.stage < 0 || message.stage >= schedule_.stages())
      return fmt::format("there is no stage {} to send to", message.stage);
    if (from < 0 || from >= schedule_.stages())
      return fmt::format("there is no stage {} to receive from", from);
    if (role != Role::reshard && !crosses(from, message.stage))
      return fmt::format("stage {} is on the same rank", role == Role::send ? message.stage : from);
    if (rank_of(from) != local.rank) return {};
    const bool made = message.gradient ? did_gradient(local, from, message.micro_batch)
                                       : did(local, ActionKind::forward, from, message.micro_batch);
    return made ? std::string() : "sends what is not made yet";
  }

  std::string broken_reduction(const Local& local, const Action& action) const {
    const bool tied = action.kind == ActionKind::reduce_tied;
    if (tied && action.stage != 0 && action.stage + 1 != schedule_.stages())
      return "only the first and the last stage hold a tied embedding";
    if (!tied && action.micro_batch >= 0) {
      const bool complete = did(local, ActionKind::backward, action.stage, action.micro_batch) ||
                            did(local, ActionKind::weight_gradient, action.stage, action.micro_batch);
      return complete ? std::string() : "reduces a gradient that is not complete";
    }
    const auto gradients = local.gradients.find(action.stage);
    const std::int32_t complete = gradients == local.gradients.end() ? 0 : gradients->second;
    if (complete < schedule_.micro_batches)
      return fmt::format("reduces after {} of {} micro-batches", complete, schedule_.micro_batches);
    if (tied && did(local, ActionKind::reduce_gradients, action.stage, -1))
      return "the copies are summed after one of them was reduced";
    return {};
  }

  std::optional<Violation> check_end_of_rank(const Local& local, std::size_t rank) const {
    const std::size_t end = schedule_.rank_actions[rank].size();
    for (const auto& [stage, whole] : local.gathered)
      if (whole)
        return Violation{rank, end, fmt::format("the list ends with stage {} still gathered", stage)};
    return std::nullopt;
  }

  std::set<std::int32_t> stages_with(ActionKind kind) const {
    std::set<std::int32_t> stages;
    for (const auto& actions : schedule_.rank_actions)
      for (const Action& action : actions)
        if (action.kind == kind) stages.insert(action.stage);
    return stages;
  }

  /// What is placed for one is placed for all: reductions of every stage, tied sums on both sides.
  std::optional<Violation> check_pairs_present(bool transfers) const {
    const std::set<std::int32_t> reduced = stages_with(ActionKind::reduce_gradients);
    if (transfers || !reduced.empty())
      for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage)
        if (!reduced.contains(stage)) return end_of(stage, "are never reduced");
    const std::set<std::int32_t> tied = stages_with(ActionKind::reduce_tied);
    if (tied.size() == 1)
      return end_of(*tied.begin() == 0 ? schedule_.stages() - 1 : 0,
                    "miss the tied embedding of the other end");
    return check_each_micro_batch_reduced();
  }

  Violation end_of(std::int32_t stage, std::string_view rule) const {
    const std::size_t rank = rank_of(stage);
    return {rank, schedule_.rank_actions[rank].size(),
            fmt::format("the gradients of stage {} {}", stage, rule)};
  }

  /// A stage is reduced as a whole, or once for each micro-batch.
  std::optional<Violation> check_each_micro_batch_reduced() const {
    std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> counts;  // whole, per micro-batch
    for (const auto& actions : schedule_.rank_actions)
      for (const Action& action : actions)
        if (action.kind == ActionKind::reduce_gradients)
          ++(action.micro_batch < 0 ? counts[action.stage].first : counts[action.stage].second);
    for (const auto& [stage, count] : counts)
      if (count != std::pair(1, 0) && count != std::pair(0, schedule_.micro_batches))
        return end_of(stage, fmt::format("are reduced {} times as a whole and for {} of {} micro-batches",
                                         count.first, count.second, schedule_.micro_batches));
    return std::nullopt;
  }

  /// The messages of each directed pair leave and arrive in the same order.
  std::optional<Violation> check_channels() const {
    struct Entry {
      Message message;
      std::size_t index;
    };
    std::map<Channel, std::vector<Entry>> sent;
    std::map<Channel, std::vector<Entry>> received;
    for (std::size_t rank = 0; rank < schedule_.rank_actions.size(); ++rank)
      for (std::size_t index = 0; index < schedule_.rank_actions[rank].size(); ++index) {
        const Action& action = schedule_.rank_actions[rank][index];
        if (role_of(action.kind) == Role::none) continue;
        const Message message = message_of(action);
        const Channel channel = channel_of(message);
        if (channel.first == channel.second) continue;
        (channel.first == rank ? sent : received)[channel].push_back({message, index});
      }
    for (const auto& [channel, messages] : sent) {
      const std::vector<Entry>& arrivals = received[channel];
      for (std::size_t at = 0; at < messages.size(); ++at) {
        if (at >= arrivals.size())
          return Violation{channel.first, messages[at].index,
                           fmt::format("pipeline rank {} never receives it", channel.second)};
        if (messages[at].message.reshard != arrivals[at].message.reshard)
          return Violation{
              channel.second, arrivals[at].index,
              fmt::format("one end of a transfer from pipeline rank {} reshards, the other does not",
                          channel.first)};
        if (messages[at].message != arrivals[at].message)
          return Violation{
              channel.second, arrivals[at].index,
              fmt::format("receives the {}, but pipeline rank {} sends the {} first",
                          text_of(arrivals[at].message), channel.first, text_of(messages[at].message))};
      }
    }
    for (const auto& [channel, arrivals] : received)
      if (arrivals.size() > sent[channel].size())
        return Violation{channel.second, arrivals[sent[channel].size()].index,
                         fmt::format("pipeline rank {} never sends it", channel.first)};
    return std::nullopt;
  }

  Channel channel_of(const Message& message) const {
    return {rank_of(message.from()), rank_of(message.stage)};
  }

  /// Runs every rank's list in order. A receive waits for its message. A send that is not buffered waits
  /// until its receiver stands at the receive. A tied sum and a reshard wait for the other end.
  std::optional<Violation> check_deadlock(bool buffered) const {
    std::vector<std::size_t> next(schedule_.rank_actions.size());
    std::map<Channel, std::deque<Message>> in_transit;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < next.size(); ++rank)
        while (next[rank] < schedule_.rank_actions[rank].size() && step(rank, buffered, next, in_transit))
          moved = true;
    }
    for (std::size_t rank = 0; rank < next.size(); ++rank)
      if (next[rank] < schedule_.rank_actions[rank].size())
        return Violation{rank, next[rank],
                         buffered ? "deadlock: never ends, even with buffered sends"
                                  : "deadlock: never ends where a send blocks until it is received"};
    return std::nullopt;
  }

  bool step(std::size_t rank, bool buffered, std::vector<std::size_t>& next,
            std::map<Channel, std::deque<Message>>& in_transit) const {
    const Action& action = schedule_.rank_actions[rank][next[rank]];
    const auto at_peer = [&](std::size_t peer) -> const Action* {
      const std::vector<Action>& actions = schedule_.rank_actions[peer];
      return next[peer] < actions.size() ? &actions[next[peer]] : nullptr;
    };
    const Role role = role_of(action.kind);
    const Message message = role == Role::none ? Message{} : message_of(action);
    const Channel channel = role == Role::none ? Channel{rank, rank} : channel_of(message);
    if (action.kind == ActionKind::reduce_tied) {
      const std::size_t other = rank_of(action.stage == 0 ? schedule_.stages() - 1 : 0);
      const Action* peer = at_peer(other);
      if (other != rank) {
        if (peer == nullptr || peer->kind != ActionKind::reduce_tied) return false;
        ++next[other];
      }
    } else if (channel.first != channel.second && buffered && role == Role::send) {
      in_transit[channel].push_back(message);
    } else if (channel.first != channel.second && buffered && role == Role::receive) {
      std::deque<Message>& messages = in_transit[channel];
      if (messages.empty()) return false;
      messages.pop_front();
    } else if (channel.first != channel.second) {
      if (channel.second == rank) return false;  // the sender moves both
      const Action* peer = at_peer(channel.second);
      if (peer == nullptr || role_of(peer->kind) == Role::none || message_of(*peer) != message) return false;
      ++next[channel.second];
    }
    ++next[rank];
    return true;
  }

  const Schedule& schedule_;
};

}  // namespace

std::optional<Violation> check_communication(const Schedule& schedule) {
  return CommunicationCheck(schedule).run();
}

}  // namespace specs
