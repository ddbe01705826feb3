// What a report could not read or does not show, as sentences for its reader. Bounded: further ones
// are counted. A value type.
#pragma once

#include "apps/report/limits.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::report {

class Notes {
 public:
  void add(std::string sentence) {
    if (sentences_.size() < limits::kReportNotes_max) {
      sentences_.push_back(std::move(sentence));
    } else {
      ++more_;
    }
  }

  std::vector<std::string> all() const {
    std::vector<std::string> out = sentences_;
    if (more_ > 0) out.push_back("and " + std::to_string(more_) + " more");
    return out;
  }
  bool empty() const noexcept { return sentences_.empty(); }

 private:
  std::vector<std::string> sentences_;
  std::uint64_t more_ = 0;
};

}  // namespace troupe::report
