#include "runtime/data/blend_order.hpp"

#include "runtime/core/rng.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace troupe::data {
namespace {

constexpr std::uint64_t kBlendDomain = 0x626C656E64;  // a random stream of this file's own

core::Failure bad_shares(const std::string& why, std::string_view advice = {}) {
  return core::fail(core::ErrorCode::kConfig, "data.probs: " + why, advice);
}

// Divides `total` places by shares, rounded down. The places left over go to the largest
// remainders; of equal ones, to the first file.
std::vector<std::uint64_t> places_of(std::span<const double> shares, std::uint64_t total) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::uint64_t> places;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double exact = shares[i] / sum * static_cast<double>(total);
    places.push_back(static_cast<std::uint64_t>(std::floor(exact)));
    given += places.back();
    if (shares[i] > 0) remainders.emplace_back(std::floor(exact) - exact, i);
  }
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t i = 0; given < total; ++i, ++given)
    ++places[remainders[i % remainders.size()].second];
  return places;
}

}  // namespace

core::Result<BlendOrder> BlendOrder::create(std::span<const std::uint64_t> sizes,
                                            std::span<const double> shares,
                                            std::uint64_t seed,
                                            std::vector<std::uint64_t> runs) {
  BlendOrder out;
  out.seed_ = seed;
  out.rows_ = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
  if (shares.empty()) {
    out.files_.push_back({0, out.rows_, PromptOrder(out.rows_, seed, std::move(runs))});
    return out;
  }
  if (!runs.empty()) {
    return core::fail(core::ErrorCode::kConfig,
                      "data.rows_together: files are blended by data.probs row by row",
                      "give one of the two");
  }
  if (shares.size() != sizes.size()) {
    return bad_shares(std::to_string(shares.size()) + " share(s) for " +
                          std::to_string(sizes.size()) + " file(s)",
                      "give one for each");
  }
  if (std::accumulate(shares.begin(), shares.end(), 0.0) <= 0) return bad_shares("all are 0");
  const std::vector<std::uint64_t> places = places_of(shares, out.rows_);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && shares[i] > 0)
      return bad_shares("file " + std::to_string(i + 1) + " has a share and no rows");
    const std::uint64_t own_seed = core::derive_seed(seed, kBlendDomain, i);
    out.files_.push_back(
        {first, places[i], PromptOrder(std::max<std::uint64_t>(sizes[i], 1), own_seed)});
    first += sizes[i];
  }
  return out;
}

void BlendOrder::shuffle(std::uint64_t pass) {
  turns_.clear();
  turns_.reserve(rows_);
  for (std::size_t i = 0; i < files_.size(); ++i)
    turns_.insert(turns_.end(), files_[i].places, {static_cast<std::uint32_t>(i), 0});
  core::Rng rng(core::derive_seed(seed_, kBlendDomain + 1, pass));
  core::shuffle(turns_, rng);
  std::vector<std::uint64_t> seen(files_.size(), 0);
  for (Turn& turn : turns_)
    turn.nth = seen[turn.file]++;
  pass_ = pass;
}

std::uint64_t BlendOrder::row_at(std::uint64_t index) {
  if (files_.size() == 1) return files_[0].first + files_[0].order.row_at(index);
  const std::uint64_t pass = index / rows_;
  if (turns_.empty() || pass != pass_) shuffle(pass);
  const Turn& turn = turns_[index % rows_];
  File& file = files_[turn.file];
  return file.first + file.order.row_at(pass * file.places + turn.nth);
}

}  // namespace troupe::data
