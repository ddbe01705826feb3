#include "runtime/net/http_callers.hpp"

#include "runtime/net/limits.hpp"

#include <algorithm>

namespace troupe::net {

bool HttpCallers::any_awaited() const {
  return std::ranges::any_of(list_, &HttpCaller::awaited);
}

bool HttpCallers::cut_silent(core::TimePoint now) {
  auto chosen = list_.end();
  for (auto one = list_.begin(); one != list_.end(); ++one) {
    if (!(*one)->awaited || now - (*one)->since < limits::kHttpSilence) continue;
    const bool better = chosen == list_.end() || ((*chosen)->asked && !(*one)->asked) ||
                        ((*chosen)->asked == (*one)->asked && (*one)->since < (*chosen)->since);
    if (better) chosen = one;
  }
  if (chosen == list_.end()) return false;
  boost::system::error_code ignored;
  (*chosen)->stream->socket().close(ignored);
  list_.erase(chosen);
  return true;
}

}  // namespace troupe::net
