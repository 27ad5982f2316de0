#include "runtime/launch/rank_failure.h"

#include <charconv>
#include <filesystem>
#include <new>

#include <fmt/format.h>

#include "runtime/checkpoint/checkpoint_error.h"
#include "runtime/comm/communication_error.h"
#include "runtime/data/data_error.h"
#include "runtime/launch/run_error.h"

namespace runtime {

std::string RankFailure::text() const {
  return fmt::format("{} {} {}", exit_code, consequence ? 1 : 0, message);
}

RankFailure RankFailure::parse(std::string_view text) {
  RankFailure failure;
  const auto code = std::from_chars(text.data(), text.data() + text.size(), failure.exit_code);
  const std::size_t flag = static_cast<std::size_t>(code.ptr - text.data()) + 1;
  if (flag + 2 > text.size()) return {exit_internal, false, std::string(text)};
  failure.consequence = text[flag] == '1';
  failure.message = text.substr(flag + 2);
  return failure;
}

RankFailure failure_of(const std::exception& error) {
  const std::string text = error.what();
  // c10 errors carry a backtrace from the second line on.
  RankFailure failure{exit_internal, false, text.substr(0, text.find("\nException raised from"))};
  if (const auto* run = dynamic_cast<const RunError*>(&error)) {
    failure.exit_code = run->code();
  } else if (const auto* communication = dynamic_cast<const CommunicationError*>(&error)) {
    const bool lost = communication->failure() == CommunicationFailure::connection_lost;
    failure.consequence = lost;
    failure.exit_code =
        lost ? exit_rank_died
             : (communication->failure() == CommunicationFailure::timeout ? exit_timeout : exit_internal);
  } else if (dynamic_cast<const CheckpointMismatch*>(&error) != nullptr) {
    failure.exit_code = exit_bad_input;
    failure.message += "; give another --run-dir, or begin anew with --overwrite";
  } else if (dynamic_cast<const CheckpointError*>(&error) != nullptr ||
             dynamic_cast<const DataError*>(&error) != nullptr ||
             dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr) {
    failure.exit_code = exit_storage;
  } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    failure.message = "out of memory";
  }
  return failure;
}

}  // namespace runtime
