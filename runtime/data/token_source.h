// A stream of tokens on disk, addressed by position.
#pragma once

#include <cstdint>
#include <span>

namespace runtime {

/// Positions run from 0 to size(). Reading is not safe from several threads at once.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  /// Tokens in the stream.
  virtual std::int64_t size() const = 0;

  /// Tokens first … first + tokens.size() − 1. Errors: DataError where the files have changed underneath.
  virtual void read(std::int64_t first, std::span<std::int64_t> tokens) const = 0;
};

}  // namespace runtime
