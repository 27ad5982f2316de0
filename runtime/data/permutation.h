// An order of 0 … n − 1 that can be asked for any place at once.
#pragma once

#include <cstdint>

namespace runtime {

/// A bijection of 0 … size − 1, a pure function of (size, key): no memory, any place in constant time.
///
/// A Feistel network of eight rounds over the smallest even number of bits that holds size − 1; a value
/// outside is sent through again until it falls inside (Black and Rogaway, "Ciphers with arbitrary finite
/// domains", CT-RSA 2002), at most 4 times on average.
class Permutation {
 public:
  /// Requires size ≥ 1.
  Permutation(std::int64_t size, std::uint64_t key);

  std::int64_t operator()(std::int64_t index) const;

 private:
  std::uint64_t encipher(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_;
};

}  // namespace runtime
