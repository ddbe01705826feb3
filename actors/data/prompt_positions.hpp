// The positions of a prompt stream, each given once, the lowest first. After a restart some are in
// use by tickets of an earlier life, while lower ones are free again: their tickets were lost with
// the end of the log. Pure.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace troupe::actors::data {

class PromptPositions {
 public:
  PromptPositions() = default;
  // All below `next` are in use, and those of `ahead`.
  explicit PromptPositions(std::uint64_t next, std::set<std::uint64_t> ahead = {})
      : next_(next), ahead_(std::move(ahead)) {
    skip_used();
  }

  std::uint64_t take() {
    const std::uint64_t position = next_++;
    skip_used();
    return position;
  }
  // A ticket of an earlier life has this position.
  void use(std::uint64_t position) {
    if (position >= next_) ahead_.insert(position);
    skip_used();
  }

  // The lowest that is free.
  std::uint64_t next() const noexcept { return next_; }
  // The positions in use above `next`.
  const std::set<std::uint64_t>& ahead() const noexcept { return ahead_; }
  bool is_used(std::uint64_t position) const {
    return position < next_ || ahead_.contains(position);
  }
  std::uint64_t used() const noexcept { return next_ + ahead_.size(); }
  // Error kNotFound: of `most` positions fewer than `wanted` are free, for this update.
  core::Result<void> check_left(std::uint64_t most,
                                std::uint64_t update,
                                std::uint64_t wanted) const {
    if (used() + wanted <= most) return {};
    return core::fail(core::ErrorCode::kNotFound,
                      "the prompts are used up: " + std::to_string(used()) + " of " +
                          std::to_string(most) + " are taken, update " +
                          std::to_string(update + 1) + " asks for " + std::to_string(wanted) +
                          " more");
  }

 private:
  void skip_used() {
    while (!ahead_.empty() && *ahead_.begin() <= next_) {
      next_ += *ahead_.begin() == next_ ? 1 : 0;
      ahead_.erase(ahead_.begin());
    }
  }

  std::uint64_t next_ = 0;
  std::set<std::uint64_t> ahead_;
};

}  // namespace troupe::actors::data
