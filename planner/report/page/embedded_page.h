// The style sheet and the script of the page, compiled in from planner/report/page.
#pragma once

#include <span>

#include "specs/catalog/embedded_file.h"

namespace planner {

using specs::EmbeddedFile;

std::span<const EmbeddedFile> embedded_page();

}  // namespace planner
