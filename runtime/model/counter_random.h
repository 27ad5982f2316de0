// Random numbers as a pure function of (key, counter): the same value whatever rank asks, in whatever order.
//
// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11, section 3).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace runtime {

using RandomBlock = std::array<std::uint32_t, 4>;

constexpr RandomBlock philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  RandomBlock x{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
                static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  auto k0 = static_cast<std::uint32_t>(key);
  auto k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * x[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * x[2];
    x = {static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
}

/// FNV-1a with a final mix, for keys from names.
constexpr std::uint64_t random_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (const char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3ULL;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 33);
}

}  // namespace runtime
