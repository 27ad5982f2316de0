// From experiment.toml to an `Experiment` with every default filled in.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "specs/diagnostics/diagnostic.h"
#include "specs/language/experiment.h"
#include "specs/language/model_importer.h"

namespace specs {

/// Reads, fills in and checks. `overrides` are the `path=value` of `--set`, applied in order, checked like
/// the file; positions in them are reported as `--set`:1:column. A value that is not TOML is taken as a
/// string, so that `cluster.node=dgx-h100` needs no quotes. Errors: an unreadable file, TOML syntax, unknown
/// keys, wrong types, values out of range, contradictions (`check_experiment`); all of them together, sorted
/// by position.
Result<Experiment> read_experiment(const std::filesystem::path& path,
                                   const std::vector<std::string>& overrides = {},
                                   const ModelImporter& import_model = {});

/// The same for a text that `file_name` stands for in messages and whose stem is the default name.
Result<Experiment> read_experiment_text(std::string_view text, const std::string& file_name,
                                        const std::vector<std::string>& overrides = {},
                                        const ModelImporter& import_model = {});

/// Contradictions and values out of range of an experiment that did not come from a text (a plan's inputs).
Diagnostics check_experiment(const Experiment& experiment);

/// One point of the experiment matrix: what was set, as `path=value`, and the experiment (with no sweep
/// left).
struct SweepPoint {
  std::vector<std::string> settings;
  Experiment experiment;
  bool operator==(const SweepPoint&) const = default;
};

/// All combinations of the `[sweep]` values, the last axis fastest; one point without settings where nothing
/// is swept.
Result<std::vector<SweepPoint>> read_sweep(const std::filesystem::path& path,
                                           const std::vector<std::string>& overrides = {},
                                           const ModelImporter& import_model = {});
Result<std::vector<SweepPoint>> read_sweep_text(std::string_view text, const std::string& file_name,
                                                const std::vector<std::string>& overrides = {},
                                                const ModelImporter& import_model = {});

}  // namespace specs
