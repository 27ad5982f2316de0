// Treatments of single module kinds (attention, FFN, embedding, output layer) laid over a placement.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/search.h"
#include "specs/plan/placement.h"

namespace planner {

/// A tensor degree of a module kind, as [search] names it and a placement holds it.
struct ModuleDegree {
  std::string_view key;
  std::vector<std::int64_t> specs::SearchSpec::*restriction;
  std::int64_t specs::ModuleTreatments::*degree;
};

inline constexpr std::array<ModuleDegree, 4> module_degrees{
    {{"attention_tensor", &specs::SearchSpec::attention_tensor, &specs::ModuleTreatments::attention_tensor},
     {"feed_forward_tensor", &specs::SearchSpec::feed_forward_tensor,
      &specs::ModuleTreatments::feed_forward_tensor},
     {"embedding_tensor", &specs::SearchSpec::embedding_tensor, &specs::ModuleTreatments::embedding_tensor},
     {"output_tensor", &specs::SearchSpec::output_tensor, &specs::ModuleTreatments::output_tensor}}};

/// As certificates and descriptions write them: "own" where every module has the mesh's degree, else
/// "attention/2+feed-forward/1/token-share+output/token-parallel".
std::string value_of(const specs::ModuleTreatments& modules);

/// True where [search] restricts a module's tensor degree or the output layer's mode.
bool restricts_modules(const specs::SearchSpec& search);

/// `search` with the mesh's own degree for every module and a vocabulary-parallel output layer instead.
specs::SearchSpec without_module_treatments(specs::SearchSpec search);

/// The placement with the one treatment that [search] leaves each module kind, in all its stages; degrees
/// that equal the stage's become 0, the canonical form. Errors: a restriction that leaves several values.
specs::Result<specs::Placement> with_module_treatments(specs::Placement placement,
                                                       const specs::SearchSpec& search);

/// The placement with each cut that falls before an attention moved behind it, so that stages begin with an
/// FFN.
specs::Placement with_cuts_before_feed_forwards(specs::Placement placement, std::int64_t layers);

}  // namespace planner
