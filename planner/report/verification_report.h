// `dsplan verify`: what was checked and what does not hold.
#pragma once

#include "planner/report/report.h"
#include "planner/verify_certificate.h"

namespace planner {

Report verification_report(const Verification& verification);

}  // namespace planner
