#include "runtime/core/rng.hpp"

#include <cmath>
#include <numbers>

namespace troupe::core {
namespace {

__extension__ using Product = unsigned __int128;

std::uint64_t splitmix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::uint64_t key,
                                        std::uint64_t counter_low,
                                        std::uint64_t counter_high) noexcept {
  std::uint32_t k0 = static_cast<std::uint32_t>(key);
  std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
  std::array<std::uint32_t, 4> c = {
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c[0];
    const std::uint64_t p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) noexcept {
  const std::uint32_t word = philox4x32(seed, position, stream)[0];
  return (static_cast<double>(word) + 0.5) * 0x1.0p-32;
}

std::uint64_t derive_seed(std::uint64_t a,
                          std::uint64_t b,
                          std::uint64_t c,
                          std::uint64_t d) noexcept {
  return splitmix(splitmix(splitmix(splitmix(a) ^ b) ^ c) ^ d);
}

std::uint64_t Rng::next_u64() noexcept {
  const auto block = philox4x32(seed_, position_++, stream_);
  return (static_cast<std::uint64_t>(block[1]) << 32) | block[0];
}

double Rng::next_uniform() noexcept {
  return (static_cast<double>(next_u64() >> 11) + 0.5) * 0x1.0p-53;
}

double Rng::next_normal() noexcept {
  const double radius = std::sqrt(-2.0 * std::log(next_uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * next_uniform());
}

std::uint64_t Rng::next_below(std::uint64_t bound) noexcept {
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const std::uint64_t word = next_u64();
    const Product product = static_cast<Product>(word) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

}  // namespace troupe::core
