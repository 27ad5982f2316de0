// The search space written out for the verification of certificates: plain loops over every number, each
// member judged by specs/plan/placement_check, the stack's profile and [search]. Slow, and independent of
// planner/space and planner/legality.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "specs/language/experiment.h"
#include "specs/language/stack.h"
#include "specs/plan/placement.h"

namespace planner {

struct WrittenOutMesh {
  std::string name;  ///< "tensor=8 context=1 pipeline=16 data=8", with expert degrees for mixtures
  std::vector<specs::RegularPlacement> members;
};

class WrittenOutSpace {
 public:
  WrittenOutSpace(const specs::Experiment& experiment, const specs::StackSpec& stack);
  const std::vector<WrittenOutMesh>& meshes() const { return meshes_; }

 private:
  std::vector<WrittenOutMesh> meshes_;
};

}  // namespace planner
