// The parts of a report that each come from one kind of file of a run folder. They read in a stream
// and without trust: whatever is not of the known form is left out.
#pragma once

#include "apps/report/budget.hpp"
#include "apps/report/notes.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string_view>

namespace troupe::report {

using nlohmann::ordered_json;

// How the roles of a run spent their time, its nodes and what it lost, from status.json, which a
// run over several processes leaves: {roles, nodes, parts, lost, ages, together_s, watched_s}, or
// null without the file.
ordered_json company_json(const std::filesystem::path& run, Notes& notes);

// Whether a process of this host works in the run folder now (holds its lock).
bool is_running(const std::filesystem::path& run);

// Held-out problems as a run answered them at its first and at its last evaluation, from eval/.
// Only reinforcement learning has such files. {before, after (steps; absent: none), problems,
// shown, rows}: of each problem and mode (greedy or sampled) the scores and the first answers
// before and after. Problems are spread evenly when there are more than are shown.
ordered_json held_out_json(const std::filesystem::path& run, Budget& budget, Notes& notes);

// How much time each role spent on what, from the spans of trace.json (log.trace), which has no end
// while the run is in progress: [{name, node, seconds, spans: [[state, cause, seconds]]}] in the
// order of the file, the longest cause of a role first; null without the file.
ordered_json trace_json(const std::filesystem::path& run, Notes& notes);

// Of troupe.log: {lines: [{t, text, fault}], all, left_out, marks: [{step, text}]}: the first lines
// and the last, if there are more than are shown; lines that tell of faults are kept before others.
// Marks are what changed a run at an update: rewards that came, went or got another weight.
ordered_json log_json(const std::filesystem::path& run, Notes& notes);

// True for a line about something lost, failed, refused or replaced, judged by its words.
bool tells_of_fault(std::string_view line);

// {groups, samples, replaced, damaged, ages: [[age in versions, groups]]}, or null without a
// ledger.
ordered_json ledger_json(const std::filesystem::path& run, Notes& notes);

// [{name, bytes, end}]: the ends of nodes/*.log.
ordered_json node_logs_json(const std::filesystem::path& run, Notes& notes);

// The names of nonfinite_step_N.jsonl and failed_step_N.jsonl.
ordered_json failed_steps_json(const std::filesystem::path& run);

}  // namespace troupe::report
