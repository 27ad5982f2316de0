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

 private:
  void print(std::string_view line) const;

  int output_;
  std::string prefix_;
  std::string rest_;
};

}  // namespace runtime
