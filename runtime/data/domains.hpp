// Which of several teachers a row has: the column of its domain, and the domain of each teacher. A
// value type; any thread.
#pragma once

#include "runtime/core/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::data {

struct Domains {
  std::string key{};                 // of the column; empty: there is one teacher, or none
  std::vector<std::string> names{};  // one for each teacher; `other` as the last takes the rest

  // The place in `names` of the domain of a row, a JSON object; 0 without a key. A value that is no
  // text counts as its JSON. Error kData, which does not name the row: it has no such column, or
  // no teacher has its domain.
  core::Result<std::uint32_t> teacher_of(const std::string& row) const;
};

}  // namespace troupe::data
