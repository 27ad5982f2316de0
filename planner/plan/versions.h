// What a plan says of the program that made it.
#pragma once

#include <string>

namespace planner {

/// "dsplan 0.1.0"
std::string program_version();

/// "0.1.0 constants 1f0c…": the formulas go with the program, the constants are hashed.
std::string cost_model_version();

}  // namespace planner
