#include "tests/published/documents.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace published {

void replace_block(const std::filesystem::path& file, std::string_view name, std::string_view text) {
  std::stringstream buffer;
  buffer << std::ifstream(file).rdbuf();
  std::string whole = buffer.str();
  const std::string begin = "<!-- " + std::string(name) + " -->\n";
  const std::string end = "<!-- end of " + std::string(name) + " -->";
  const std::size_t first = whole.find(begin);
  const std::size_t last = first == std::string::npos ? first : whole.find(end, first);
  if (last == std::string::npos)
    throw std::runtime_error(file.string() + " has no block " + begin.substr(0, begin.size() - 1));
  whole.replace(first + begin.size(), last - first - begin.size(), text);
  const std::filesystem::path temporary = file.string() + ".new";
  std::ofstream(temporary) << whole;
  std::filesystem::rename(temporary, file);
}

std::string markdown_of(const std::vector<Measure>& measures) {
  std::string text = "| measure | reached | bound |\n|---|---|---|\n";
  for (const Measure& measure : measures) {
    const std::string detail = measure.value && !measure.detail.empty() ? " (" + measure.detail + ")" : "";
    const std::string mark = measure.holds() ? "" : "**";
    text += "| " + measure.name + " | " + mark + value_of(measure) + detail + mark + " | " +
            bound_of(measure) + " |\n";
  }
  return text;
}

std::string markdown_of(const cost_models::ConstantTable& constants) {
  std::string text = "| constant | value | prior | spread | meaning |\n|---|---|---|---|---|\n";
  for (const cost_models::Constant& constant : constants.constants()) {
    char numbers[96];
    if (constant.spread > 0)
      std::snprintf(numbers, sizeof numbers, "%.4g | %.4g | %.2g", constant.value, constant.prior,
                    constant.spread);
    else
      std::snprintf(numbers, sizeof numbers, "%.4g | – | –", constant.value);
    text += "| " + constant.name + " | " + numbers + " | " + constant.meaning + " |\n";
  }
  return text;
}

}  // namespace published
