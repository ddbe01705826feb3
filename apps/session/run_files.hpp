// Writes committed groups to the run folder: for an update rollouts/step_N.jsonl and one ledger
// record per group, for an evaluation eval/step_N.jsonl. Called on the data role's strand, in slot
// order.
#pragma once

#include "actors/data/group_sink.hpp"
#include "runtime/store/ledger.hpp"
#include "runtime/store/run_folder.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe::session {

class RunFiles final : public actors::data::GroupSink {
 public:
  // `folder` outlives this object. `source_key`: column of a held-out row that names its source.
  static core::Result<std::unique_ptr<RunFiles>> open(const store::RunFolder& folder,
                                                      std::string source_key = "datasource");

  // Called when the ledger was made again, with what to tell the user. Set before the first commit.
  void when_mended(std::function<void(const std::string&)> note) { note_ = std::move(note); }

  core::Result<void> commit(std::uint64_t update,
                            std::uint64_t after_step,
                            const std::vector<actors::data::CommittedGroup>& groups) override;

 private:
  RunFiles(const store::RunFolder& folder, store::Ledger ledger, std::string source_key)
      : folder_(folder), ledger_(std::move(ledger)), source_key_(std::move(source_key)) {}

  core::Result<void> commit_evaluation(bool greedy,
                                       std::uint64_t after_step,
                                       const std::vector<actors::data::CommittedGroup>& groups);

  const store::RunFolder& folder_;
  store::Ledger ledger_;
  const std::string source_key_;
  std::function<void(const std::string&)> note_;
};

}  // namespace troupe::session
