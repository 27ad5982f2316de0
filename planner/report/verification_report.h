// `dsplan verify`: what was checked and what does not hold.
#pragma once

#include "planner/certificate/verify_certificate.h"
#include "planner/report/report.h"

namespace planner {

Report verification_report(const Verification& verification);

}  // namespace planner
