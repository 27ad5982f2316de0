#include "specs/language/read_experiment.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "specs/language/checks.h"
#include "specs/language/defaults.h"
#include "specs/language/key_reader.h"
#include "specs/language/overrides.h"
#include "specs/language/section_keys.h"
#include "specs/language/text_file.h"
#include "specs/language/value_tree.h"
#include "specs/language/write_experiment.h"

namespace specs {

namespace {

constexpr std::string_view sweep_key = "sweep";
constexpr std::size_t most_sweep_points = 10'000;
/// Up to here every point of a sweep is checked when the file is read; beyond, each value once.
constexpr std::size_t most_checked_points = 256;

struct Axis {
  std::string path;
  std::vector<PathSegment> segments;
  std::vector<Value> values;
};

/// A document with the overrides applied and the sweep taken out of it.
struct Document {
  Value base;
  std::vector<Axis> axes;
  std::string default_name;
  std::filesystem::path folder;
  ModelImporter import_model;
};

std::string stem_of(const std::string& file_name) {
  const std::string stem = std::filesystem::path(file_name).stem().string();
  return stem.empty() ? std::string("experiment") : stem;
}

std::optional<Axis> read_axis(const TableEntry& entry, Diagnostics& diagnostics) {
  Axis axis;
  axis.path = entry.key;
  auto segments = split_path(entry.key, entry.key_span);
  diagnostics.append(segments.diagnostics);
  const bool values = entry.value.kind == ValueKind::array && !entry.value.elements.empty();
  if (!values)
    diagnostics.add(
        diagnostic_at(entry.value.span,
                      fmt::format("sweep.\"{}\": expected an array of at least one value, saw {} {}",
                                  entry.key, kind_name(entry.value.kind), shown(entry.value)),
                      "for example \"cluster.nodes\" = [8, 16, 32]"));
  if (!values || !segments) return std::nullopt;
  axis.segments = std::move(*segments);
  axis.values = entry.value.elements;
  return axis;
}

/// `[sweep]` may be written with quoted paths, or with bare ones, which TOML reads as tables in tables.
void collect_axes(const Value& table, const std::string& prefix, std::vector<Axis>& axes,
                  Diagnostics& diagnostics) {
  for (TableEntry entry : table.entries) {
    entry.key = prefix + entry.key;
    if (entry.value.kind == ValueKind::table)
      collect_axes(entry.value, entry.key + ".", axes, diagnostics);
    else if (auto axis = read_axis(entry, diagnostics))
      axes.push_back(std::move(*axis));
  }
}

std::optional<Document> read_document(std::string_view text, const std::string& file_name,
                                      const std::vector<std::string>& overrides,
                                      const ModelImporter& import_model, Diagnostics& diagnostics) {
  Result<Value> parsed = parse_toml(text, file_name);
  diagnostics.append(parsed.diagnostics);
  if (!parsed) return std::nullopt;
  Document document;
  document.base = std::move(*parsed);
  document.base.span.line = 1;
  document.base.span.column = 1;
  document.default_name = stem_of(file_name);
  document.folder = std::filesystem::path(file_name).parent_path();
  document.import_model = import_model;
  diagnostics.append(apply_overrides(document.base, overrides));
  if (const TableEntry* sweep = document.base.find(sweep_key)) {
    if (sweep->value.kind == ValueKind::table)
      collect_axes(sweep->value, "", document.axes, diagnostics);
    else
      diagnostics.add(
          diagnostic_at(sweep->value.span, fmt::format("sweep: expected table, saw {} {}",
                                                       kind_name(sweep->value.kind), shown(sweep->value))));
    std::erase_if(document.base.entries, [](const TableEntry& entry) { return entry.key == sweep_key; });
  }
  return document;
}

/// The name becomes that of the run's folder.
void check_name(const std::string& name, CheckReport& report) {
  const bool odd = std::any_of(name.begin(), name.end(), [](char letter) {
    return letter == '/' || letter == '\\' || static_cast<unsigned char>(letter) < ' ';
  });
  if (odd || name == "." || name == "..")
    report.error({"name"}, fmt::format("name \"{}\" cannot name a folder", name),
                 "letters, digits, '-', '_' and '.', without '/'");
}

Experiment read_values(const Document& document, const Value& root, Diagnostics& diagnostics) {
  Experiment experiment;
  experiment.model = starting_model();
  ReadState state;
  state.import_model = document.import_model;
  state.folder = document.folder;
  state.positions.add("", root.span);
  KeyReader reader(root, "", state);
  reader.accept(sweep_key);
  visit_keys(reader, experiment);
  reader.refuse_unknown_keys();

  if (experiment.name.empty()) experiment.name = document.default_name;
  if (experiment.model.name.empty()) experiment.model.name = experiment.name;
  fill_in(experiment);
  CheckReport report(state.positions, state.diagnostics);
  check_name(experiment.name, report);
  check_model(experiment.model, report);
  check_cluster(experiment.cluster, report);
  check_training(experiment, report);
  check_search(experiment, report);
  diagnostics.append(state.diagnostics);
  return experiment;
}

std::size_t point_count(const std::vector<Axis>& axes) {
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    count *= axis.values.size();
    if (count > most_sweep_points) return most_sweep_points + 1;
  }
  return count;
}

/// Value of each axis in the point of that number; the last axis is the fastest.
std::vector<std::size_t> point_indices(const std::vector<Axis>& axes, std::size_t number) {
  std::vector<std::size_t> indices(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    indices[i] = number % axes[i].values.size();
    number /= axes[i].values.size();
  }
  return indices;
}

std::string setting(const Axis& axis, const Value& value) {
  return fmt::format("{}={}", axis.path, value.kind == ValueKind::text ? value.text : to_toml(value));
}

SweepPoint read_point(const Document& document, const std::vector<std::size_t>& indices,
                      Diagnostics& diagnostics) {
  SweepPoint point;
  Value root = document.base;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Axis& axis = document.axes[i];
    diagnostics.append(set_value(root, axis.segments, axis.values[indices[i]]));
    point.settings.push_back(setting(axis, axis.values[indices[i]]));
  }
  point.experiment = read_values(document, root, diagnostics);
  return point;
}

bool same_finding(const Diagnostic& a, const Diagnostic& b) {
  return a.position == b.position && a.message == b.message && a.severity == b.severity;
}

/// Adds what a point brings beyond the findings that are there already.
void append_new(const Diagnostics& found, const std::vector<std::string>& settings,
                Diagnostics& diagnostics) {
  for (Diagnostic entry : found.entries()) {
    const auto& known = diagnostics.entries();
    const bool seen = std::any_of(known.begin(), known.end(), [&entry](const Diagnostic& other) {
      return same_finding(entry, other) || (entry.position == other.position &&
                                            other.message.starts_with(entry.message + " (sweep point "));
    });
    if (seen) continue;
    if (!settings.empty()) entry.message += fmt::format(" (sweep point {})", fmt::join(settings, ", "));
    diagnostics.add(std::move(entry));
  }
}

/// Of the findings those that the base has too, or those that it has not.
Diagnostics shared_with(const Diagnostics& base, const Diagnostics& found, bool shared) {
  Diagnostics kept;
  for (const Diagnostic& entry : found.entries()) {
    const auto& entries = base.entries();
    const bool of_base = std::any_of(entries.begin(), entries.end(), [&entry](const Diagnostic& other) {
      return same_finding(entry, other);
    });
    if (of_base == shared) kept.add(entry);
  }
  return kept;
}

bool refuse_large_sweep(const Document& document, Diagnostics& diagnostics) {
  if (point_count(document.axes) <= most_sweep_points) return false;
  diagnostics.add(diagnostic_at(document.axes.front().segments.front().span,
                                fmt::format("sweep: more than {} points", most_sweep_points),
                                "sweep fewer keys or values at once"));
  return true;
}

void check_points(const Document& document, Diagnostics& diagnostics) {
  const std::vector<Axis>& axes = document.axes;
  if (axes.empty() || refuse_large_sweep(document, diagnostics)) return;
  std::vector<std::vector<std::size_t>> points;
  if (const std::size_t count = point_count(axes); count <= most_checked_points) {
    for (std::size_t number = 0; number < count; ++number) points.push_back(point_indices(axes, number));
  } else {
    for (std::size_t i = 0; i < axes.size(); ++i)
      for (std::size_t value = 0; value < axes[i].values.size(); ++value) {
        points.emplace_back(axes.size(), 0);
        points.back()[i] = value;
      }
  }
  for (const std::vector<std::size_t>& indices : points) {
    Diagnostics found;
    const SweepPoint point = read_point(document, indices, found);
    append_new(found, point.settings, diagnostics);
  }
}

template <class Read>
auto with_file(const std::filesystem::path& path, const Read& read) {
  decltype(read(std::string())) result;
  const Result<std::string> text = read_text_file(path);
  if (text) return read(*text);
  result.diagnostics = text.diagnostics;
  return result;
}

}  // namespace

Result<Experiment> read_experiment_text(std::string_view text, const std::string& file_name,
                                        const std::vector<std::string>& overrides,
                                        const ModelImporter& import_model) {
  Result<Experiment> result;
  Diagnostics& diagnostics = result.diagnostics;
  if (const auto document = read_document(text, file_name, overrides, import_model, diagnostics)) {
    Experiment experiment = read_values(*document, document->base, diagnostics);
    check_points(*document, diagnostics);
    for (const Axis& axis : document->axes) {
      SweepAxis swept{axis.path, {}};
      for (const Value& value : axis.values) swept.values.push_back(to_toml(value));
      experiment.sweep.push_back(std::move(swept));
    }
    if (!diagnostics.has_errors()) result.value = std::move(experiment);
  }
  diagnostics.sort_by_position();
  return result;
}

Result<Experiment> read_experiment(const std::filesystem::path& path,
                                   const std::vector<std::string>& overrides,
                                   const ModelImporter& import_model) {
  return with_file(path, [&](const std::string& text) {
    return read_experiment_text(text, path.string(), overrides, import_model);
  });
}

Result<std::vector<SweepPoint>> read_sweep_text(std::string_view text, const std::string& file_name,
                                                const std::vector<std::string>& overrides,
                                                const ModelImporter& import_model) {
  Result<std::vector<SweepPoint>> result;
  Diagnostics& diagnostics = result.diagnostics;
  std::vector<SweepPoint> points;
  if (const auto document = read_document(text, file_name, overrides, import_model, diagnostics)) {
    if (!refuse_large_sweep(*document, diagnostics)) {
      Diagnostics base;
      read_values(*document, document->base, base);
      for (std::size_t number = 0; number < point_count(document->axes); ++number) {
        Diagnostics found;
        points.push_back(read_point(*document, point_indices(document->axes, number), found));
        append_new(shared_with(base, found, true), {}, diagnostics);
        append_new(shared_with(base, found, false), points.back().settings, diagnostics);
      }
    }
  }
  diagnostics.sort_by_position();
  if (!diagnostics.has_errors()) result.value = std::move(points);
  return result;
}

Result<std::vector<SweepPoint>> read_sweep(const std::filesystem::path& path,
                                           const std::vector<std::string>& overrides,
                                           const ModelImporter& import_model) {
  return with_file(path, [&](const std::string& text) {
    return read_sweep_text(text, path.string(), overrides, import_model);
  });
}

Diagnostics check_experiment(const Experiment& experiment) {
  // Written out and read again, so that values from elsewhere meet exactly the rules of a file. Their places
  // in that text mean nothing to the user; every message names its key.
  Diagnostics placeless;
  const auto read = read_experiment_text(write_experiment_toml(experiment), "experiment", {});
  for (Diagnostic entry : read.diagnostics.entries()) {
    entry.position = {};
    entry.source_line.clear();
    placeless.add(std::move(entry));
  }
  return placeless;
}

}  // namespace specs
