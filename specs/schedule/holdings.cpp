#include "specs/schedule/holdings.h"

namespace specs {
namespace {

class Replay {
 public:
  Replay(const Schedule& schedule, std::int32_t rank, const std::function<void(const Holdings&)>& visit)
      : schedule_(schedule), rank_(rank), visit_(visit) {
    now_.kept.assign(static_cast<std::size_t>(schedule.virtual_stages), 0);
    now_.deferred = now_.kept;
  }

  void run() {
    for (const Action& action : schedule_.rank_actions[static_cast<std::size_t>(rank_)]) perform(action);
  }

 private:
  bool on_this_rank(std::int32_t stage) const { return schedule_.rank_of_stage(stage) == rank_; }
  bool is_last(std::int32_t stage) const { return stage == schedule_.stages() - 1; }

  void visit(const Action& action) {
    now_.action = action;
    visit_(now_);
  }

  void forward(const Action& action) {
    if (action.stage > 0) --now_.arrived_activations;
    ++now_.kept[chunk(action)];
    visit(action);
    if (!is_last(action.stage) && on_this_rank(action.stage + 1)) ++now_.arrived_activations;
  }

  void backward(const Action& action) {
    visit(action);
    --now_.kept[chunk(action)];
    if (action.kind == ActionKind::input_gradient) ++now_.deferred[chunk(action)];
    if (!is_last(action.stage))
      --(on_this_rank(action.stage + 1) ? now_.own_gradients : now_.arrived_gradients);
    if (action.stage > 0) ++now_.own_gradients;
  }

  void perform(const Action& action) {
    switch (action.kind) {
      case ActionKind::forward:
        return forward(action);
      case ActionKind::backward:
      case ActionKind::input_gradient:
        return backward(action);
      case ActionKind::weight_gradient:
        visit(action);
        --now_.deferred[chunk(action)];
        return;
      case ActionKind::send_activation:
        now_.sending_activation = static_cast<std::int32_t>(chunk(action));
        return;
      case ActionKind::send_gradient:
        --now_.own_gradients;
        now_.sending_gradient = static_cast<std::int32_t>(chunk(action));
        return;
      case ActionKind::receive_activation:
        ++now_.arrived_activations;
        return;
      case ActionKind::receive_gradient:
        ++now_.arrived_gradients;
        return;
      default:
        return;
    }
  }

  std::size_t chunk(const Action& action) const {
    return static_cast<std::size_t>(action.stage / schedule_.pipeline_ranks);
  }

  const Schedule& schedule_;
  std::int32_t rank_;
  const std::function<void(const Holdings&)>& visit_;
  Holdings now_;
};

}  // namespace

void follow_holdings(const Schedule& lowered, std::int32_t pipeline_rank,
                     const std::function<void(const Holdings&)>& visit) {
  Replay(lowered, pipeline_rank, visit).run();
}

}  // namespace specs
