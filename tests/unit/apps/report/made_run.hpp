// A run folder that a test writes by hand, file by file.
#pragma once

#include "actors/data/book_events.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "runtime/config/read.hpp"
#include "runtime/config/render.hpp"
#include "runtime/store/ledger.hpp"
#include "runtime/store/step_log.hpp"
#include "tests/unit/runtime/store/temp_folder.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::test {

class MadeRun {
 public:
  explicit MadeRun(const std::string& name = "run") : path_(folder_ / name) {
    std::filesystem::create_directories(path_);
  }
  const std::filesystem::path& path() const { return path_; }

  // The configuration that `words` ("--algo.kl.init_coef", "0.1") make of the defaults.
  void configure(const std::vector<std::string>& words) {
    const auto builder = config::read(session::run_table(), words);
    ASSERT_TRUE(builder) << builder.error().message;
    put("resolved_config.yaml", config::resolved_yaml(builder->current(), builder->origins()));
  }
  void put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((path_ / file).parent_path());
    put_file(path_ / file, text);
  }
  void put_rollouts(std::uint64_t step, const std::vector<nlohmann::ordered_json>& rows) {
    std::string text;
    for (const auto& row : rows)
      text += row.dump() + "\n";
    char name[64];
    std::snprintf(name, sizeof name, "rollouts/step_%06llu.jsonl",
                  static_cast<unsigned long long>(step));
    put(name, text);
  }
  void log_events(std::uint64_t step, const std::vector<actors::data::BookEvent>& events) {
    std::filesystem::create_directories(path_ / "experience");
    store::StepLog log(path_ / "experience", store::system_disk());
    for (const actors::data::BookEvent& event : events)
      log.add(step, actors::data::record_of(event));
    auto batch = log.take();
    ASSERT_TRUE(log.write(batch));
  }

 private:
  TempFolder folder_;
  std::filesystem::path path_;
};

// One line of a rollout file.
inline nlohmann::ordered_json rollout(std::uint64_t slot,
                                      std::uint64_t sample,
                                      const std::string& response,
                                      std::uint64_t tokens,
                                      double reward) {
  return {{"step", 1},
          {"slot", slot},
          {"attempt", 0},
          {"prompt_id", 7},
          {"sample", sample},
          {"prompt", "p" + std::to_string(slot)},
          {"response", response},
          {"label", "l"},
          {"tokens", tokens},
          {"reward", reward},
          {"reward_set", 0},
          {"rewards", {{"rule", reward}}},
          {"finish_reason", "eos"},
          {"truncated", false},
          {"version_min", 3},
          {"version_max", 4}};
}

}  // namespace troupe::test
