#include "actors/protocol/messages_node.hpp"

#include "actors/protocol/limits.hpp"

namespace troupe::actors {

core::Result<void> Beat::check() const {
  if (reports.size() <= limits::kHostedRoles_max) return {};
  return core::fail(core::ErrorCode::kData, "a heartbeat has too many roles");
}

core::Result<void> PutLog::check() const {
  std::size_t bytes = 0;
  for (const std::string& line : lines)
    bytes += line.size();
  if (lines.size() <= limits::kLogBatch_lines_max && bytes <= limits::kLogBatch_bytes_max)
    return {};
  return core::fail(core::ErrorCode::kData, "a message has too many lines of a log");
}

}  // namespace troupe::actors
