// What a run may still put into the page: texts in bytes, and tokens with log-probs. Owned by the
// report of one run.
#pragma once

#include "apps/report/limits.hpp"

#include <cstdint>
#include <string>

namespace troupe::report {

class Budget {
 public:
  Budget(std::uint64_t text_bytes, std::uint64_t tokens) : bytes_(text_bytes), tokens_(tokens) {}

  bool spent() const noexcept { return bytes_ == 0; }

  // The text, at most its first `bytes_max` bytes (whole characters), with a mark that says how
  // many are left out.
  std::string take(std::string text, std::uint64_t bytes_max = limits::kReportText_bytes_max);

  // True if that many tokens still fit.
  bool take_tokens(std::uint64_t count) {
    if (count > tokens_) return false;
    tokens_ -= count;
    return true;
  }

 private:
  std::uint64_t bytes_, tokens_;
};

}  // namespace troupe::report
