// Blocks of the project's documents that a program writes: between "<!-- NAME -->" and "<!-- end of NAME
// -->".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/constants.h"
#include "tests/published/measures.h"

namespace published {

/// Puts `text` between the marks of the block; throws std::runtime_error where the file lacks them.
void replace_block(const std::filesystem::path& file, std::string_view name, std::string_view text);

/// Markdown: | measure | reached | bound |, what does not hold in bold.
std::string markdown_of(const std::vector<Measure>& measures);

/// Markdown: | constant | value | prior | spread | meaning |.
std::string markdown_of(const cost_models::ConstantTable& constants);

}  // namespace published
