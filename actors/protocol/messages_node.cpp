#include "actors/protocol/messages_node.hpp"

#include "actors/limits.hpp"

namespace troupe::actors {

core::Result<void> Beat::check() const {
  if (reports.size() <= limits::kHostedRoles_max) return {};
  return core::fail(core::ErrorCode::kData, "a heartbeat with too many roles");
}

core::Result<void> PutLog::check() const {
  std::size_t bytes = 0;
  for (const std::string& line : lines)
    bytes += line.size();
  if (lines.size() <= limits::kLogBatch_lines_max && bytes <= limits::kLogBatch_bytes_max)
    return {};
  return core::fail(core::ErrorCode::kData, "too many lines of a log in one message");
}

}  // namespace troupe::actors
