// Exit codes of both programs.
#pragma once

namespace cli {

inline constexpr int exit_done = 0;
inline constexpr int exit_answer_is_no = 1;  ///< nothing fits, lint found errors
inline constexpr int exit_bad_input = 2;
inline constexpr int exit_internal = 3;  ///< internal or system failure

}  // namespace cli
