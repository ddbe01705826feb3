// How often the runs of a batch met each kind of message, error code, fault and state. What is
// never met was not tested. A plain value.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace troupe::sim {

class Census {
 public:
  void count(const std::string& kind, const std::string& what, std::uint64_t times = 1) {
    counts_[kind][what] += times;
  }
  void add(const Census& other) {
    for (const auto& [kind, all] : other.counts_)
      for (const auto& [what, times] : all)
        counts_[kind][what] += times;
  }
  std::uint64_t of(const std::string& kind, const std::string& what) const {
    const auto found = counts_.find(kind);
    if (found == counts_.end()) return 0;
    const auto one = found->second.find(what);
    return one == found->second.end() ? 0 : one->second;
  }
  std::string text() const {
    std::string text;
    for (const auto& [kind, all] : counts_) {
      text += kind + ":";
      for (const auto& [what, times] : all)
        text += " " + what + " " + std::to_string(times) + ",";
      text.back() = '\n';
    }
    return text;
  }

 private:
  std::map<std::string, std::map<std::string, std::uint64_t>> counts_;
};

}  // namespace troupe::sim
