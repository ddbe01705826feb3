// How much time each role spent on what, from the spans of trace.json (log.trace). The file may be
// that of a run in progress: it has no end then. Reads in a stream.
#pragma once

#include "apps/report/notes.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace troupe::report {

// [{name, node, seconds, spans: [[state, cause, seconds]]}] in the order of the file, the longest
// cause of a role first; null without the file.
nlohmann::ordered_json trace_json(const std::filesystem::path& run, Notes& notes);

}  // namespace troupe::report
