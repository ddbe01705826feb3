// Loads and checks the inputs of supervised training before a run folder is touched: tokenizer,
// rows, held-out rows. Called on the thread of the `train` command.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/data/placed_rows.hpp"
#include "runtime/data/supervised_dataset.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::session {

struct SupervisedInputs {
  data::MakePlacedRows training;
  std::shared_ptr<const data::SupervisedDataset> held;        // of training; null: streamed
  std::shared_ptr<const data::SupervisedDataset> evaluation;  // null without eval.dataset
  std::uint64_t rows = 0, dropped = 0;  // of training: used, and left out because too long
  std::uint64_t steps = 0;              // optimiser steps of the run
  std::vector<std::string> notes;       // what the user should know
  std::string tools_warning;            // of training, one of the notes; empty: none
  bool has_chats = false;               // the template rendered a row of training
};

// How the run's method reads a row.
core::Result<data::SupervisedColumns> supervised_columns(const config::TrainConfig& config,
                                                         const text::Tokenizer& tokenizer);

// Errors name the key, or file and line.
core::Result<SupervisedInputs> load_supervised(const config::TrainConfig& config);

}  // namespace troupe::session
