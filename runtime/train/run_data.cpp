#include "runtime/train/run_data.h"

#include <optional>
#include <utility>

#include "runtime/data/default_data.h"

namespace runtime {

specs::Result<RunData> open_run_data(const RunOptions& options) {
  specs::Result<RunData> result;
  const std::optional<std::filesystem::path> path = options.data ? options.data : default_data();
  if (!path) {
    result.diagnostics.error({}, "no data: LibTorch's headers, the default text, are not on this machine",
                             "give --data PATH");
    return result;
  }
  auto opened = open_data(*path, options.plan.inputs.training, options.plan.inputs.model.vocabulary,
                          options.data_tokens);
  result.diagnostics = std::move(opened.diagnostics);
  if (opened) result.value.emplace(RunData{*path, std::move(*opened)});
  return result;
}

}  // namespace runtime
