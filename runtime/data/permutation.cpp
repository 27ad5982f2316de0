#include "runtime/data/permutation.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/model/counter_random.h"

namespace runtime {

namespace {
constexpr std::uint64_t rounds = 8;
}

Permutation::Permutation(std::int64_t size, std::uint64_t key)
    : size_(static_cast<std::uint64_t>(size)),
      key_(key),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(size_ - 1)) + 1) / 2)) {}

std::uint64_t Permutation::encipher(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const RandomBlock block = philox(key_, round, right);
    left ^= (block[0] | std::uint64_t{block[1]} << 32) & mask;
    std::swap(left, right);
  }
  return left << half_bits_ | right;
}

std::int64_t Permutation::operator()(std::int64_t index) const {
  auto value = static_cast<std::uint64_t>(index);
  do value = encipher(value);
  while (value >= size_);
  return static_cast<std::int64_t>(value);
}

}  // namespace runtime
