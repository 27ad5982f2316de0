// Numbers of candidates: exact integers of any size.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>

namespace planner {

using Count = boost::multiprecision::cpp_int;

}  // namespace planner
