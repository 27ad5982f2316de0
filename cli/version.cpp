#include "cli/version.h"

namespace cli {

std::string version_line(const std::string& program) { return program + " " + DSPLAN_VERSION; }

}  // namespace cli
