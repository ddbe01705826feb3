// The card of the models that a run leaves: README.md as hubs show it, with base, data, method,
// settings and scores. Paths of this machine do not stand in it. One thread.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/observe/metric_row.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace troupe::session {

class ModelCard {
 public:
  explicit ModelCard(const config::TrainConfig& config);  // outlives this object

  // What the run has measured before.
  void read(const std::filesystem::path& metrics_file);
  void offer(const observe::MetricRow& row);

  // The text after `done` updates. `adapter`: of adapters, else of a whole model.
  std::string text(std::uint64_t done, bool adapter) const;

 private:
  struct Figure {
    std::uint64_t step = 0;
    double value = 0;
  };
  const config::TrainConfig& config_;
  std::map<std::string, Figure> figures_;  // the newest of each score
};

// Writes the texts into those folders of a checkpoint that hold a model or an adapter.
core::Result<void> write_cards(const std::filesystem::path& checkpoint,
                               const std::string& of_model,
                               const std::string& of_adapter);

}  // namespace troupe::session
