// The one thing that programs ask libtroupe_learn.so for by name. Part of the library alone.
#include "runtime/learn/build_id.hpp"
#include "runtime/learn/trainers.hpp"

namespace troupe::learn {

extern "C" {
[[gnu::visibility("default")]] extern const Trainers troupe_learn_entry;
const Trainers troupe_learn_entry{&PolicyTrainer::create, &CriticTrainer::create,
                                  &SupervisedTrainer::create, &TrainPass::create};

// Read from the file, so that it must be there.
[[gnu::visibility("default")]] extern const char* const troupe_learn_build;
const char* const troupe_learn_build = kBuildId;
}

}  // namespace troupe::learn
