#include "runtime/launch/line_relay.h"

#include <cerrno>

#include <poll.h>
#include <unistd.h>

namespace runtime {

void LineRelay::feed(std::string_view bytes) {
  rest_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    print(std::string_view(rest_).substr(begin, end - begin));
  rest_.erase(0, begin);
}

void LineRelay::finish() {
  if (!rest_.empty()) print(rest_);
  rest_.clear();
}

void LineRelay::print(std::string_view line) {
  const std::string text = prefix_ + std::string(line) + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(output_, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // whoever gave us the output does not let it wait by itself
      pollfd ready{output_, POLLOUT, 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (written <= 0) {  // the job goes on
      if (written < 0 && errno != EPIPE) error_ = errno;
      return;
    }
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace runtime
