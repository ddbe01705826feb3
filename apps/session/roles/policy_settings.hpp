// The settings of the policy's trainer with what they need from files: the texts of the ptx term,
// read and tokenised. Called once by whoever makes the trainer.
#pragma once

#include "runtime/config/train_config.hpp"
#include "runtime/core/result.hpp"
#include "runtime/learn/trainer.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::app {

// `updates`: of the whole run; `model`: the folder of the policy with its tokenizer. A text ends
// with the end token; one that is longer than the context or a micro-batch is cut into pieces.
// Errors: those of the files of data.pretrain_dataset, naming file and line.
core::Result<learn::TrainerSettings> policy_settings(const config::TrainConfig& config,
                                                     std::uint64_t updates,
                                                     const std::filesystem::path& model);

}  // namespace troupe::app
