#include "runtime/net/http_callers.hpp"

#include "runtime/net/limits.hpp"

#include <algorithm>

namespace troupe::net {

bool HttpCallers::any_awaited() const {
  return std::ranges::any_of(list_, &HttpCaller::awaited);
}

bool HttpCallers::cut_silent(core::TimePoint now) {
  boost::system::error_code ignored;
  auto chosen = list_.end();
  for (auto one = list_.begin(); one != list_.end(); ++one) {
    if (!(*one)->awaited || now - (*one)->since < limits::kHttpSilence) continue;
    if ((*one)->stream->socket().available(ignored) > 0) continue;  // it is not read yet
    const bool better = chosen == list_.end() || ((*chosen)->asked && !(*one)->asked) ||
                        ((*chosen)->asked == (*one)->asked && (*one)->since < (*chosen)->since);
    if (better) chosen = one;
  }
  if (chosen == list_.end()) return false;
  (*chosen)->stream->socket().close(ignored);
  list_.erase(chosen);
  return true;
}

}  // namespace troupe::net
