// The only symbols that programs look up by name in libtroupe_learn.so. Compiled into the library
// alone.
#include "runtime/learn/build_id.hpp"
#include "runtime/learn/trainers.hpp"

namespace troupe::learn {

extern "C" {
[[gnu::visibility("default")]] extern const Trainers troupe_learn_entry;
const Trainers troupe_learn_entry{&PolicyTrainer::create, &CriticTrainer::create,
                                  &SupervisedTrainer::create, &TrainPass::create};

// trainers.cpp searches the library file for this text, so it must not be optimised away.
[[gnu::visibility("default")]] extern const char* const troupe_learn_build;
const char* const troupe_learn_build = kBuildId;
}

}  // namespace troupe::learn
