// Cuts the streamed text of one response before its first stop string: text that might begin one is
// held back until it cannot, so no part of a stop string and nothing after it is shown. Owned by
// one sample; one thread. State: fewer bytes than the longest stop string (at most
// kStopString_bytes_max).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::app {

class StopFilter {
 public:
  // `keep_match`: show the matched string itself, too.
  explicit StopFilter(std::vector<std::string> stops, bool keep_match = false)
      : stops_(std::move(stops)), keep_match_(keep_match) {}

  // Adds a piece; returns the text that may be shown now. `may_stop` false: this piece completes no
  // match (min_tokens), though it may be the beginning of one.
  std::string push(std::string_view piece, bool may_stop = true);
  // The text still held back, once the response is over.
  std::string finish();

  // The stop string that ended the text; nothing gets through after it.
  const std::optional<std::string>& matched() const noexcept { return matched_; }

 private:
  std::size_t held_back() const;

  const std::vector<std::string> stops_;
  const bool keep_match_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace troupe::app
