// One experiment: everything `dsplan` needs to know, with every default filled in.
#pragma once

#include <string>
#include <vector>

#include "specs/language/cluster.h"
#include "specs/language/model.h"
#include "specs/language/search.h"
#include "specs/language/training.h"

namespace specs {

struct Experiment {
  std::string name;  ///< file stem unless given
  ModelSpec model;
  ClusterSpec cluster;
  TrainingSpec training;
  SearchSpec search;
  std::vector<SweepAxis> sweep;
  bool operator==(const Experiment&) const = default;
};

}  // namespace specs
