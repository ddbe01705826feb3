#include "actors/node/log_backlog.hpp"

#include "actors/node/limits.hpp"
#include "actors/protocol/limits.hpp"

#include <algorithm>

namespace troupe::actors::node {

void LogBacklog::put(std::string_view text) {
  const std::lock_guard lock(mutex_);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines_.emplace_back(text.substr(0, std::min<std::size_t>(end, limits::kLogLine_bytes_max)));
    bytes_ += lines_.back().size() + 1;
    text.remove_prefix(std::min(end + 1, text.size()));
    while (bytes_ > limits::kLogKept_bytes_max) {
      bytes_ -= lines_.front().size() + 1;
      lines_.pop_front();
      ++first_;
    }
  }
}

LogBacklog::Batch LogBacklog::next() const {
  const std::lock_guard lock(mutex_);
  Batch batch{.first = first_, .dropped = first_ - std::min(first_, arrived_)};
  std::size_t bytes = 0;
  for (const std::string& line : lines_) {
    bytes += line.size();
    const bool fits = batch.lines.size() < actors::limits::kLogBatch_lines_max &&
                      bytes <= actors::limits::kLogBatch_bytes_max;
    if (!fits) break;
    batch.lines.push_back(line);
  }
  return batch;
}

void LogBacklog::arrived(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  arrived_ = std::max(arrived_, number);
  while (first_ < number && !lines_.empty()) {
    bytes_ -= lines_.front().size() + 1;
    lines_.pop_front();
    ++first_;
  }
}

}  // namespace troupe::actors::node
