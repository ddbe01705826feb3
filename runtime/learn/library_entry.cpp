// The entry of libtroupe_learn.so: the table of `create` functions, which programs look up by name,
// and the build id, which they search for in the file. Only the library contains this source.
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
