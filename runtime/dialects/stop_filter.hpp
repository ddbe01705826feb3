// Cuts the streamed text of one response before its first stop string. Holds back text that may be
// the beginning of a stop string until more text decides, so no part of one, and nothing after it,
// is shown. One thread. Holds back fewer bytes than the longest stop string (at most
// kStopString_bytes_max) has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::dialects {

class StopFilter {
 public:
  // `keep_match`: also show the matched stop string.
  explicit StopFilter(std::vector<std::string> stops, bool keep_match = false)
      : stops_(std::move(stops)), keep_match_(keep_match) {}

  // Adds a piece of text; returns the text that may be shown now. With `may_stop` false (before
  // min_tokens) this piece cannot complete a stop string, but a later piece can complete one that
  // begins in it.
  std::string push(std::string_view piece, bool may_stop = true);
  // Call it when the response has ended: returns the text that was held back.
  std::string finish();

  // The stop string that ended the text; `push` returns nothing after it.
  const std::optional<std::string>& matched() const noexcept { return matched_; }

 private:
  std::size_t held_back() const;

  const std::vector<std::string> stops_;
  const bool keep_match_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace troupe::dialects
