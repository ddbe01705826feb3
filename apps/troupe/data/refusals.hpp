// Refused rows, counted by cause. One thread.
#pragma once

#include "runtime/core/error.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::app {

class Refusals {
 public:
  // `where`: the row's place, which the cause leaves out.
  void add(const core::Error& error, const std::string& where);

  std::uint64_t count() const { return count_; }
  // The causes, the most frequent first, with their first rows.
  std::vector<std::string> lines() const;
  nlohmann::ordered_json json() const;

 private:
  struct Cause {
    std::uint64_t rows = 0;
    std::vector<std::string> first;  // places
    std::string advice;
  };
  std::vector<std::pair<std::string, Cause>> sorted() const;

  std::map<std::string, Cause> causes_;
  std::uint64_t count_ = 0;
};

}  // namespace troupe::app
