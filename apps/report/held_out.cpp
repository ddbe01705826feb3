// The part of a report from eval/.
#include "apps/report/json_members.hpp"
#include "apps/report/line_reader.hpp"
#include "apps/report/run_parts.hpp"
#include "apps/report/step_files.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::report {
namespace {

// A problem of a set in one of the two modes.
struct Problem {
  std::string set;
  std::uint64_t id = 0;
  std::string mode;
  auto operator<=>(const Problem&) const = default;
};

struct Answers {
  std::string prompt, label, source;
  ordered_json responses, scores;  // lists
};

ordered_json list_in(const ordered_json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_array() ? *found : ordered_json::array();
}

std::map<Problem, Answers> read_answers(const std::filesystem::path& file, Notes& notes) {
  std::map<Problem, Answers> out;
  const ObjectBounds bounds{limits::kReportLine_bytes_max, limits::kReportStep_bytes_max};
  read_objects(file, "eval/" + file.filename().string(), bounds, notes, [&](ordered_json& row) {
    const auto id = row.find("prompt_id");
    if (id == row.end() || !id->is_number_unsigned()) return true;
    out[{text_in(row, "set"), id->get<std::uint64_t>(), text_in(row, "mode")}] = {
        text_in(row, "prompt"), text_in(row, "label"), text_in(row, "datasource"),
        list_in(row, "responses"), list_in(row, "rewards")};
    return true;
  });
  return out;
}

ordered_json answers_json(const Answers& answers, Budget& budget) {
  ordered_json responses = ordered_json::array(), scores = ordered_json::array();
  for (const ordered_json& response : answers.responses) {
    if (responses.size() == limits::kReportAnswers_max) break;
    responses.push_back(budget.take(response.is_string() ? response.get<std::string>() : ""));
  }
  for (const ordered_json& score : answers.scores) {
    // A score that is no number is none, and never 0.
    scores.push_back(score.is_number() ? score : ordered_json());
    if (scores.size() == 64) break;
  }
  return {{"y", std::move(responses)}, {"r", std::move(scores)}, {"n", answers.responses.size()}};
}

}  // namespace

ordered_json held_out_json(const std::filesystem::path& run, Budget& budget, Notes& notes) {
  const StepFiles evaluations = list_steps(run / "eval", ".jsonl");
  ordered_json out = {{"problems", 0}, {"shown", 0}, {"rows", ordered_json::array()}};
  if (evaluations.files.empty()) return out;
  const auto& [first_step, first_file] = *evaluations.files.begin();
  const auto& [last_step, last_file] = *evaluations.files.rbegin();
  const auto before = read_answers(first_file, notes);
  out["before"] = first_step;
  std::map<Problem, Answers> after;
  if (last_step != first_step) {
    after = read_answers(last_file, notes);
    out["after"] = last_step;
  }
  std::vector<Problem> problems;
  for (const auto& [problem, answers] : before)
    problems.push_back(problem);
  for (const auto& [problem, answers] : after) {
    if (!before.contains(problem)) problems.push_back(problem);
  }
  out["problems"] = problems.size();
  for (const std::size_t place : spread_places(problems.size(), limits::kReportProblems_max)) {
    if (budget.spent()) break;
    const auto was = before.find(problems[place]);
    const auto is = std::as_const(after).find(problems[place]);
    const Answers& either = was != before.end() ? was->second : is->second;
    ordered_json row = {{"id", problems[place].id},
                        {"mode", budget.take(problems[place].mode, 40)},
                        {"p", budget.take(either.prompt)},
                        {"l", budget.take(either.label, 2000)}};
    std::string source = problems[place].set;
    if (!source.empty() && !either.source.empty()) source += "/";
    source += either.source;
    if (!source.empty()) row["source"] = budget.take(source, 200);
    if (was != before.end()) row["before"] = answers_json(was->second, budget);
    if (is != after.end()) row["after"] = answers_json(is->second, budget);
    out["rows"].push_back(std::move(row));
  }
  out["shown"] = out["rows"].size();
  return out;
}

}  // namespace troupe::report
