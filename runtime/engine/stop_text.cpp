#include "runtime/engine/stop_text.hpp"

#include <algorithm>

namespace troupe::engine {

bool completes_stop(const TokenText& text,
                    std::span<const std::int32_t> tokens,
                    std::span<const std::string> stop_strings) {
  if (tokens.empty() || stop_strings.empty()) return false;
  std::size_t longest = 0;
  for (const std::string& stop : stop_strings)
    longest = std::max(longest, stop.size());
  const std::span<const std::int32_t> tail =
      tokens.last(std::min(tokens.size(), longest + kStopTailSlack_tokens));
  const std::string after = text.decode(tail);
  const std::string before = text.decode(tail.first(tail.size() - 1));
  const auto differ = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  const auto old = static_cast<std::size_t>(differ.first - before.begin());
  return std::any_of(stop_strings.begin(), stop_strings.end(), [&](const std::string& stop) {
    const std::size_t from = old >= stop.size() ? old - stop.size() + 1 : 0;
    return after.find(stop, from) != std::string::npos;
  });
}

}  // namespace troupe::engine
