#include "runtime/dialects/stop_filter.hpp"

#include <algorithm>

namespace troupe::dialects {

std::string StopFilter::push(std::string_view piece, bool may_stop) {
  if (matched_) return {};
  const std::size_t old = held_.size();
  held_ += piece;
  std::size_t first = std::string::npos;
  const std::string* match = nullptr;
  for (const std::string& stop : stops_) {
    if (!may_stop || stop.empty()) continue;
    // Ignore a match that ended in an earlier piece: it came before min_tokens.
    const std::size_t from = old >= stop.size() ? old - stop.size() + 1 : 0;
    const std::size_t found = held_.find(stop, from);
    if (found == std::string::npos || found > first) continue;
    if (found == first && match->size() >= stop.size()) continue;
    first = found;
    match = &stop;
  }
  if (match != nullptr) {
    matched_ = *match;
    return held_.substr(0, first + (keep_match_ ? match->size() : 0));
  }
  const std::size_t keep = held_back();
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return out;
}

std::string StopFilter::finish() {
  if (matched_) return {};
  return std::exchange(held_, std::string());
}

// The length of the longest end of held_ that is the beginning of a stop string.
std::size_t StopFilter::held_back() const {
  std::size_t most = 0;
  const std::string_view text = held_;
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, text.size()); size > most; --size) {
      if (text.ends_with(std::string_view(stop).substr(0, size))) {
        most = size;
        break;
      }
    }
  }
  return most;
}

}  // namespace troupe::dialects
