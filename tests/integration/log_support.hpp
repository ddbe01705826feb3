// What the experience log and the metrics of a run say of its evaluations. For tests that kill runs
// which keep their log (run.keep_experience).
#pragma once

#include "actors/data/book_events.hpp"
#include "company_support.hpp"
#include "runtime/store/step_log.hpp"

namespace troupe::test {

// A run of 40 updates that evaluates before, after and every 4 updates, and saves at the end alone.
inline std::vector<std::string> evaluated_run(const TinyRun& files) {
  return {"--train.max_steps",
          "40",
          "--ckpt.save_steps",
          "0",
          "--rollout.max_new_tokens",
          "12",
          "--eval.dataset",
          (files / "train.jsonl").string(),
          "--eval.steps",
          "4",
          "--eval.n_samples_per_prompt",
          "2",
          "--run.keep_experience",
          "true"};
}

// The rows of a run's metrics in their order, without times.
inline std::vector<nlohmann::json> metric_rows(const std::filesystem::path& run) {
  std::vector<nlohmann::json> rows;
  std::istringstream in(text_of(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    auto row = nlohmann::json::parse(line, nullptr, false);
    EXPECT_TRUE(row.is_object()) << line;
    for (auto it = row.begin(); it != row.end();) {
      const std::string& name = it.key();
      const bool varies = name == "time" || name.starts_with("time/") || name.starts_with("perf/");
      it = varies ? row.erase(it) : std::next(it);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// How often each held-out ticket was issued and taken, by number of the evaluation and slot.
struct EvaluationCounts {
  std::map<std::pair<std::uint64_t, std::uint32_t>, int> issued, taken;
};
inline EvaluationCounts evaluations_in_log(const std::filesystem::path& run) {
  EvaluationCounts counts;
  const store::StepLog log(run / "experience", store::system_disk());
  const auto steps = log.steps();
  EXPECT_TRUE(steps);
  if (!steps) return counts;
  for (const std::uint64_t step : *steps) {
    const auto content = log.read(step);
    EXPECT_TRUE(content);
    if (!content) continue;
    for (const std::string& record : content->records) {
      const auto event = actors::data::event_of(record);
      EXPECT_TRUE(event) << step;
      if (!event) continue;
      if (const auto* const issued = std::get_if<actors::data::TicketIssued>(&*event)) {
        const auto& ticket = issued->saved.ticket;
        if (experience::is_evaluation(ticket.update)) ++counts.issued[{ticket.update, ticket.slot}];
      } else if (const auto* const taken = std::get_if<actors::data::GroupTaken>(&*event)) {
        const auto& ticket = taken->ticket;
        if (experience::is_evaluation(ticket.update)) ++counts.taken[{ticket.update, ticket.slot}];
      }
    }
  }
  return counts;
}

// Each of the 24 problems was sampled once in each of the 2 * 11 evaluations; and the evaluations
// after up to `steps` updates, which were over before the run was killed, were never begun again.
inline void expect_each_evaluation_once(const std::filesystem::path& run, std::uint64_t steps) {
  const EvaluationCounts counts = evaluations_in_log(run);
  EXPECT_EQ(counts.taken.size(), 24u * 22);
  for (const auto& [problem, times] : counts.taken)
    EXPECT_EQ(times, 1) << "after " << experience::step_of(problem.first);
  for (const auto& [problem, times] : counts.issued) {
    if (experience::step_of(problem.first) > steps) continue;
    EXPECT_EQ(times, 1) << "after " << experience::step_of(problem.first);
  }
}

}  // namespace troupe::test
