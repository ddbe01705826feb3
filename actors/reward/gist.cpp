#include "actors/reward/gist.hpp"

namespace troupe::actors {

std::string gist_of(const std::string& cause) {
  const auto begin = cause.find("Traceback (most recent call last):");
  const auto end = cause.find_last_not_of("\n ");
  if (begin == cause.npos || end == cause.npos) return cause;
  const auto before = cause.rfind('\n', end);
  if (before == cause.npos || before < begin) return cause;
  return cause.substr(0, begin) + cause.substr(before + 1, end - before);
}

}  // namespace troupe::actors
