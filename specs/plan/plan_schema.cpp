#include "specs/plan/plan_schema.h"

#include "specs/plan/json_keys.h"
#include "specs/plan/plan_keys.h"

namespace specs {

nlohmann::ordered_json plan_schema() {
  // A cluster of one group is written without the list of groups, one of several with it alone.
  nlohmann::ordered_json merged;
  for (std::size_t groups : {1, 2}) {
    Plan plan;
    plan.inputs.cluster.groups.resize(groups);
    JsonSchemaWriter writer;
    visit_keys(writer, plan);
    merged = merged.is_null() ? writer.schema() : merge_schemas(merged, writer.schema());
  }
  nlohmann::ordered_json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                                   {"title", "A plan: what dsplan decides and dsrun executes"}};
  schema.update(merged);
  return schema;
}

}  // namespace specs
