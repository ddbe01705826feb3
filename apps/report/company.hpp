// How the roles of a run spent their time, its nodes and what it lost, from status.json, which a
// run over several processes leaves. Reads it without trust: whatever is not of the known form is
// left out.
#pragma once

#include "apps/report/notes.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace troupe::report {

// {roles, nodes, parts, lost, ages, together_s, watched_s}, or null without the file.
nlohmann::ordered_json company_json(const std::filesystem::path& run, Notes& notes);

// Whether a process of this host works in the run folder now (holds its lock).
bool is_running(const std::filesystem::path& run);

}  // namespace troupe::report
