#include "tests/memory/memory_fixture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace runtime {
namespace {

using specs::MemoryClass;

constexpr double total_bar = 0.03;
constexpr double class_bar = 0.05;
constexpr double least_share = 0.05;  ///< of the total, of a class that is compared
constexpr double held_bar = 0.001;    ///< of the total
constexpr std::array held_throughout{MemoryClass::parameters, MemoryClass::gradients,
                                     MemoryClass::optimizer_state, MemoryClass::master_weights};

std::int64_t total(const ClassBytes& bytes) {
  std::int64_t sum = 0;
  for (const std::int64_t value : bytes) sum += value;
  return sum;
}

double error_of(std::int64_t predicted, std::int64_t counted) {
  return static_cast<double>(predicted - counted) / static_cast<double>(std::max<std::int64_t>(counted, 1));
}

/// Predicted over counted, less one; of the class with the largest error.
struct Errors {
  double total = 0;
  double of_class = 0;
  std::string_view class_name = "-";
  double held = 0;  ///< of all, the largest of a class that is held throughout
  /// 1 where a bar is touched.
  double worst() const {
    return std::max({std::abs(total) / total_bar, std::abs(of_class) / class_bar, held / held_bar});
  }
};

Errors errors_of(const ClassBytes& counted, const ClassBytes& predicted) {
  Errors errors;
  errors.total = error_of(total(predicted), total(counted));
  const auto all = static_cast<double>(std::max<std::int64_t>(total(counted), 1));
  for (const auto& [memory_class, name] : specs::EnumNames<MemoryClass>::names) {
    const auto index = static_cast<std::size_t>(memory_class);
    const auto larger = static_cast<double>(std::max(counted[index], predicted[index]));
    if (larger <= least_share * all) continue;
    const double error = error_of(predicted[index], counted[index]);
    if (std::abs(error) <= std::abs(errors.of_class)) continue;
    errors.of_class = error;
    errors.class_name = name;
  }
  for (const MemoryClass memory_class : held_throughout) {
    const auto index = static_cast<std::size_t>(memory_class);
    errors.held =
        std::max(errors.held, std::abs(static_cast<double>(predicted[index] - counted[index])) / all);
  }
  return errors;
}

std::string table(const ClassBytes& counted, const ClassBytes& predicted) {
  std::string text;
  for (const auto& [memory_class, name] : specs::EnumNames<MemoryClass>::names) {
    const auto index = static_cast<std::size_t>(memory_class);
    if (counted[index] + predicted[index] > 0)
      text += fmt::format("\n    {:<26}{:>12} counted {:>12} predicted {:>11}", name, counted[index],
                          predicted[index], predicted[index] - counted[index]);
  }
  return text;
}

struct Line {
  std::string name;
  Errors errors;
  std::string text() const {
    return fmt::format("{:<96} total {:+.2f} %  {} {:+.2f} %  held {:.3f} %", name, 100 * errors.total,
                       errors.class_name, 100 * errors.of_class, 100 * errors.held);
  }
};

/// The worst of the ranks and of the two memories.
Line expect_predicted(WorkerPool& pool, const MemoryCase& memory_case) {
  const std::vector<RankBytes> counted = counted_bytes(pool, memory_case);
  const std::vector<RankBytes> predicted = predicted_bytes(memory_case);
  Line worst{memory_case.name(), {}};
  std::string failing;
  for (std::size_t rank = 0; rank < counted.size(); ++rank)
    for (const auto& [memory, place] :
         {std::pair(&RankBytes::device, "device"), {&RankBytes::host, "host"}}) {
      const Errors errors = errors_of(counted[rank].*memory, predicted[rank].*memory);
      if (errors.worst() > worst.errors.worst()) worst.errors = errors;
      if (failing.empty() && errors.worst() > 1)
        failing = fmt::format("\n  {} of rank {}:{}", place, rank,
                              table(counted[rank].*memory, predicted[rank].*memory));
    }
  EXPECT_TRUE(failing.empty()) << worst.text() << failing;
  return worst;
}

}  // namespace

void MemoryTest::expect_all_predicted(const std::vector<MemoryCase>& cases) {
  std::vector<Line> lines;
  for (const MemoryCase& memory_case : cases) {
    try {
      lines.push_back(expect_predicted(*pool_, memory_case));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  std::sort(lines.begin(), lines.end(),
            [](const Line& a, const Line& b) { return a.errors.worst() > b.errors.worst(); });
  constexpr std::size_t shown = 10;
  std::printf("%zu placements; the largest errors of the prediction:\n", lines.size());
  for (std::size_t i = 0; i < std::min(shown, lines.size()); ++i)
    std::printf("  %s\n", lines[i].text().c_str());
}

}  // namespace runtime
