// Setting one key of a document by its path: `--set` and the values of `[sweep]`.
#pragma once

#include <string>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/value_tree.h"

namespace specs {

struct PathSegment {
  std::string name;
  SourceSpan span;
};

/// "cluster.node.devices" in its parts; `span` is of the whole path. Errors: an empty part.
Result<std::vector<PathSegment>> split_path(const std::string& path, const SourceSpan& span);

/// Replaces or adds the value at the path. A table that a name stands for (`node = "dgx-h100"`) becomes a
/// table with that preset; numbers pick elements of arrays. Errors: a part of a value that has none.
Diagnostics set_value(Value& document, const std::vector<PathSegment>& path, Value value);

/// Applies each `path=value` in order; all errors are reported.
Diagnostics apply_overrides(Value& document, const std::vector<std::string>& overrides);

}  // namespace specs
