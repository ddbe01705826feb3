// The page of a report: one HTML file with its style, its script and its data, that loads nothing.
// What comes from a run is data alone: JSON in a script element that no browser executes. A
// Content-Security-Policy allows the one script and the one style by their hashes. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe::report {

// JSON that may stand in a script element: it has no <, >, & or Unicode line separator, and no
// character that is invisible or reorders a line.
std::string script_json(const nlohmann::ordered_json& value);

std::string page(const nlohmann::ordered_json& data);

}  // namespace troupe::report
