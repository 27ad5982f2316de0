#include "tests/published/constants_file.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace published {

void write_constants(const cost_models::ConstantTable& constants, const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    std::ifstream input(entry.path());
    std::ostringstream output;
    std::string line, name;
    while (std::getline(input, line)) {
      if (line.starts_with('[')) name = line.substr(1, line.find(']') - 1);
      if (line.starts_with("value = ") && constants.contains(name)) {
        const auto& constant = constants.constants()[constants.index(name)];
        if (constant.spread > 0) {
          char text[64];
          std::snprintf(text, sizeof text, "value = %.6g", constant.value);
          line = text;
        }
      }
      output << line << '\n';
    }
    input.close();
    const std::filesystem::path temporary = entry.path().string() + ".new";
    std::ofstream(temporary) << output.str();
    std::filesystem::rename(temporary, entry.path());
  }
}

cost_models::ConstantTable read_constants(const std::filesystem::path& folder) {
  cost_models::ConstantTable table;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    table.add(text.str());
  }
  return table;
}

}  // namespace published
