// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A value depends only on key and counter, never on batch slot, thread or call
// order. The free functions are stateless and safe on any thread.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::core {

// The 128 random bits for a key and a counter.
std::array<std::uint32_t, 4> philox4x32(std::uint64_t key,
                                        std::uint64_t counter_low,
                                        std::uint64_t counter_high) noexcept;

// Uniform in the open interval (0, 1): (i + 0.5) / 2^32, where i is the first word of the block for
// key `seed` and counter (`position`, `stream`).
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) noexcept;

// Mixes words into one seed (splitmix64 steps), such as derive_seed(seed, update, slot, attempt).
std::uint64_t derive_seed(std::uint64_t a,
                          std::uint64_t b,
                          std::uint64_t c = 0,
                          std::uint64_t d = 0) noexcept;

// A sequential generator over one (seed, stream), for shuffles and data generation.
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  std::uint64_t next_u64() noexcept;
  double next_uniform() noexcept;                          // (0, 1)
  double next_normal() noexcept;                           // mean 0, variance 1 (Box-Muller)
  std::uint64_t next_below(std::uint64_t bound) noexcept;  // [0, bound), unbiased; bound >= 1
  std::uint64_t position() const noexcept { return position_; }
  void seek(std::uint64_t position) noexcept { position_ = position; }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t position_ = 0;
};

// Shuffles `items`; every order is equally likely (Fisher-Yates).
template <class T>
void shuffle(std::vector<T>& items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i)
    std::swap(items[i - 1], items[rng.next_below(i)]);
}

}  // namespace troupe::core
