// What happened in a run: the lines of troupe.log, the groups of the ledger, the ends of the nodes'
// logs, and the files that a failed step leaves. Reads in a stream.
#pragma once

#include "apps/report/notes.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string_view>

namespace troupe::report {

// {lines: [{t, text, fault}], all, left_out, marks: [{step, text}]}: the first lines and the last,
// if there are more than are shown; lines that tell of faults are kept before others. Marks are
// what changed a run at an update: rewards that came, went or got another weight.
nlohmann::ordered_json log_json(const std::filesystem::path& run, Notes& notes);

// True for a line that tells of something lost, failed, refused or replaced. Judged by its words.
bool tells_of_fault(std::string_view line);

// {groups, samples, replaced, damaged, ages: [[age in versions, groups]]}, or null without a
// ledger.
nlohmann::ordered_json ledger_json(const std::filesystem::path& run, Notes& notes);

// [{name, bytes, end}]: the ends of nodes/*.log.
nlohmann::ordered_json node_logs_json(const std::filesystem::path& run, Notes& notes);

// The names of nonfinite_step_N.jsonl and failed_step_N.jsonl.
nlohmann::ordered_json failed_steps_json(const std::filesystem::path& run);

}  // namespace troupe::report
