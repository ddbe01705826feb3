// Opens libtroupe_learn.so, which holds the trainers and links LibTorch, or its twin for another
// version of LibTorch (kLearnLibraries), when a process first asks for a trainer
// (docs/adr/0009-libtorch-on-demand.md). Programs create trainers only through this table; a
// program linked with LibTorch (such as tests) may call the `create` functions directly. Any
// thread; the library is never closed.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/model/train_pass.hpp"
#include "runtime/learn/rl/critic_trainer.hpp"
#include "runtime/learn/rl/trainer.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "runtime/learn/torch/libtorch.hpp"

#include <filesystem>
#include <memory>

namespace troupe::learn {

// The `create` functions of the classes.
struct Trainers {
  decltype(&PolicyTrainer::create) policy;
  decltype(&CriticTrainer::create) critic;
  decltype(&SupervisedTrainer::create) supervised;
  decltype(&TrainPass::create) pass;
};

// Opens the library and LibTorch at the first call. Errors: those of find_trainers(), and
// kResources with the dynamic loader's message.
core::Result<const Trainers*> trainers();

struct TrainersFiles {
  std::filesystem::path library;
  LibTorch torch;
};

// Finds the files that trainers() would open, without opening them. kResources, with advice: a file
// is missing or cannot be read, the library is of another build than the program, or LibTorch is of
// another version.
core::Result<TrainersFiles> find_trainers();

}  // namespace troupe::learn
