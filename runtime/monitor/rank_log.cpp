#include "runtime/monitor/rank_log.h"

#include <cstdio>

#include <fmt/format.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include "runtime/launch/run_error.h"

namespace runtime {

struct RankLog::State {
  std::shared_ptr<spdlog::logger> logger;
};

RankLog::RankLog(const std::filesystem::path& run_directory, std::int64_t rank, const std::string& level)
    : path_(run_directory / "logs" / fmt::format("rank-{}.log", rank)), state_(std::make_unique<State>()) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path_.string());
    state_->logger = std::make_shared<spdlog::logger>(fmt::format("rank {}", rank), std::move(sink));
  } catch (const spdlog::spdlog_ex& error) {
    throw RunError(exit_storage, fmt::format("cannot write the log {}: {}", path_.string(), error.what()));
  }
  state_->logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %n: %v");
  state_->logger->set_level(spdlog::level::from_str(level));
  state_->logger->flush_on(spdlog::level::debug);
  // A log that cannot be written is said once and does not end the run.
  state_->logger->set_error_handler([said = false, path = path_](const std::string& message) mutable {
    if (!said) fmt::print(stderr, "warning: log {}: {}\n", path.string(), message);
    said = true;
  });
}

RankLog::~RankLog() = default;

void RankLog::debug(const std::string& message) { state_->logger->debug(message); }
void RankLog::info(const std::string& message) { state_->logger->info(message); }
void RankLog::warning(const std::string& message) { state_->logger->warn(message); }
void RankLog::error(const std::string& message) { state_->logger->error(message); }

}  // namespace runtime
