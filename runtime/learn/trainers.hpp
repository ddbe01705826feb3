// The trainers, and LibTorch with them, are in a library of their own: libtroupe_learn.so, opened
// when a process first asks for them (docs/adr/0009-libtorch-on-demand.md). Programs make trainers
// by this table alone; a program that is linked with LibTorch (tests do it) may call the `create`
// functions themselves. Any thread; an opened library stays.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/core/team.hpp"
#include "runtime/learn/critic_trainer.hpp"
#include "runtime/learn/libtorch.hpp"
#include "runtime/learn/supervised/supervised_trainer.hpp"
#include "runtime/learn/train_pass.hpp"
#include "runtime/learn/trainer.hpp"

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

// Opens library and LibTorch the first time. kResources: as find_trainers(), or what the system's
// loader says.
core::Result<const Trainers*> trainers();

struct TrainersFiles {
  std::filesystem::path library;
  LibTorch torch;
};

// What trainers() would open; opens nothing. kResources, with what to do about it: a file is not
// there or cannot be read, the library is of another build than the program, LibTorch of another
// version.
core::Result<TrainersFiles> find_trainers();

}  // namespace troupe::learn
