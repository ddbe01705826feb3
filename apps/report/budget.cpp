#include "apps/report/budget.hpp"

#include <algorithm>

namespace troupe::report {

std::string Budget::take(std::string text, std::uint64_t bytes_max) {
  const std::size_t all = text.size();
  if (all > bytes_max) {
    std::size_t end = bytes_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end;
    text.resize(end);
    text += "... [" + std::to_string(all - end) + " more bytes]";
  }
  bytes_ -= std::min<std::uint64_t>(bytes_, text.size());
  return text;
}

}  // namespace troupe::report
