// Why a rank gave up, as told to whoever started it.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace runtime {

struct RankFailure {
  int exit_code = 3;
  /// Another rank's end made this one fail: its own error is the one to show.
  bool consequence = false;
  std::string message;

  std::string text() const;
  static RankFailure parse(std::string_view text);
  bool operator==(const RankFailure&) const = default;
};

/// What an exception means: the exit code and the message; a lost peer is a consequence.
RankFailure failure_of(const std::exception& error);

}  // namespace runtime
