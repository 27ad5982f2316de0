#include "planner/space/restrictions.h"

#include <fmt/format.h>

#include "specs/language/key_writer.h"
#include "specs/language/section_keys.h"

namespace planner {
namespace {

using specs::SearchSpec;

template <auto member>
bool differs(const SearchSpec& search) {
  return search.*member != SearchSpec{}.*member;
}

template <auto member>
void reset(SearchSpec& search) {
  search.*member = SearchSpec{}.*member;
}

template <auto member>
Restriction list(std::string_view key, std::string_view free_value = "[]") {
  return {key,
          free_value,
          differs<member>,
          reset<member>,
          [](const SearchSpec& search) { return (search.*member).size(); },
          [](SearchSpec& search, std::size_t index) { search.*member = {(search.*member)[index]}; }};
}

template <auto member>
Restriction flag(std::string_view key) {
  return {key,
          "true",
          differs<member>,
          reset<member>,
          [](const SearchSpec&) { return std::size_t{1}; },
          [](SearchSpec&, std::size_t) {}};
}

}  // namespace

const std::vector<Restriction>& all_restrictions() {
  static const std::vector<Restriction> restrictions{
      list<&SearchSpec::tensor>("tensor"),
      list<&SearchSpec::pipeline>("pipeline"),
      list<&SearchSpec::data>("data"),
      list<&SearchSpec::context>("context"),
      list<&SearchSpec::expert>("expert"),
      list<&SearchSpec::expert_tensor>("expert_tensor"),
      list<&SearchSpec::micro_batch>("micro_batch"),
      list<&SearchSpec::zero_stage>("zero_stage"),
      list<&SearchSpec::shard_scope>("shard_scope"),
      list<&SearchSpec::schedule>("schedule"),
      list<&SearchSpec::virtual_stages>("virtual_stages"),
      list<&SearchSpec::recomputation>("recomputation"),
      list<&SearchSpec::sequence_parallel>("sequence_parallel"),
      list<&SearchSpec::offload_optimizer>("offload_optimizer"),
      list<&SearchSpec::offload_parameters>("offload_parameters"),
      list<&SearchSpec::offload_activations>("offload_activations"),
      list<&SearchSpec::attention_tensor>("attention_tensor"),
      list<&SearchSpec::feed_forward_tensor>("feed_forward_tensor"),
      list<&SearchSpec::embedding_tensor>("embedding_tensor"),
      list<&SearchSpec::output_tensor>("output_tensor"),
      list<&SearchSpec::output_mode>("output_mode"),
      list<&SearchSpec::recomputed_layers>("recomputed_layers"),
      list<&SearchSpec::micro_batch_group>("micro_batch_group"),
      list<&SearchSpec::axis_order>("axis_order"),
      list<&SearchSpec::delayed_update>("delayed_update"),
      list<&SearchSpec::local_steps>("local_steps", "[1]"),
      flag<&SearchSpec::uneven_stages>("uneven_stages"),
      flag<&SearchSpec::cuts_inside_layers>("cuts_inside_layers"),
      flag<&SearchSpec::unequal_shares>("unequal_shares"),
  };
  return restrictions;
}

std::vector<const Restriction*> restrictions_of(const SearchSpec& search) {
  std::vector<const Restriction*> set;
  for (const Restriction& restriction : all_restrictions())
    if (restriction.restricts(search)) set.push_back(&restriction);
  return set;
}

std::string words_of(const Restriction& restriction, const SearchSpec& search) {
  SearchSpec copy = search;  // visitors may change what they visit; this one does not
  specs::KeyWriter writer("search");
  visit_keys(writer, copy);
  const std::string text = "\n" + writer.text();
  const std::size_t start = text.find(fmt::format("\n{} = ", restriction.key)) + 1;
  return "search." + text.substr(start, text.find('\n', start) - start);
}

}  // namespace planner
