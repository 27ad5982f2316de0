#include "planner/space/refusals.h"

#include <utility>

#include "planner/wording/quantity.h"

namespace planner {

Refusal refuse(Constraint constraint, std::string equation) {
  return Refusal{constraint, std::move(equation)};
}

MaybeRefusal restricted(std::string_view name, const std::vector<std::int64_t>& restriction,
                        std::int64_t value) {
  if (allowed(restriction, value)) return std::nullopt;
  return refuse(Constraint::search_restriction, fmt::format("{} = {} is not in [search] {} = [{}]", name,
                                                            value, name, fmt::join(restriction, ", ")));
}

MaybeRefusal divides(std::int64_t total, std::string_view what, std::int64_t degree, std::string_view name,
                     Constraint constraint) {
  if (total % degree == 0) return std::nullopt;
  return refuse(constraint,
                fmt::format("{} {} % {} {} = {}", format_count(total), what, name, degree, total % degree));
}

MaybeRefusal unsupported(const specs::StackSpec& stack, std::string_view what) {
  return refuse(Constraint::software_stack, fmt::format("the stack \"{}\" has no {}", stack.name, what));
}

MaybeRefusal positive(std::string_view name, std::int64_t value) {
  if (value >= 1) return std::nullopt;
  return refuse(Constraint::device_count, fmt::format("{} = {} is below 1", name, value));
}

}  // namespace planner
