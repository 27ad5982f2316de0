// Passes what a rank prints on to this program's own output, whole lines at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace runtime {

class LineRelay {
 public:
  LineRelay(int output, std::string prefix) : output_(output), prefix_(std::move(prefix)) {}
  void feed(std::string_view bytes);
  /// What stands unfinished, as a line.
  void finish();
  /// The errno of a write that failed, whose line is lost; 0 where there is none. A reader that left early
  /// (EPIPE) wanted no more: that is none.
  int error() const { return error_; }

 private:
  void print(std::string_view line);

  int output_;
  std::string prefix_;
  std::string rest_;
  int error_ = 0;
};

}  // namespace runtime
