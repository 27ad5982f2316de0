// One log file per rank: `<run>/logs/rank-<n>.log`, each line with time, level and rank, flushed as written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace runtime {

class RankLog {
 public:
  /// Appends; makes the folder. `level`: "debug", "info", "warning" or "error".
  /// Error: RunError (storage) where the file cannot be opened.
  RankLog(const std::filesystem::path& run_directory, std::int64_t rank, const std::string& level = "info");
  ~RankLog();
  RankLog(const RankLog&) = delete;
  RankLog& operator=(const RankLog&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void debug(const std::string& message);
  void info(const std::string& message);
  void warning(const std::string& message);
  void error(const std::string& message);

 private:
  struct State;
  std::filesystem::path path_;
  std::unique_ptr<State> state_;
};

}  // namespace runtime
