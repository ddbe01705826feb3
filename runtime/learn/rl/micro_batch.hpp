// Cuts an update into mini-batches (one optimiser step each) and these into micro-batches that fit
// the trainer's memory. A pure function of the groups' tickets and lengths: same update, same plan,
// same bits. Value types; bound: `micro_tokens_max` rows in a micro-batch.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/experience/group.hpp"
#include "runtime/learn/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::learn {

// Samples [sample_begin, sample_end) of a group; the group's prompt is computed once for them.
struct GroupPart {
  std::size_t group = 0;  // index into the update's groups
  std::size_t sample_begin = 0, sample_end = 0;
};

struct MicroBatch {
  std::vector<GroupPart> parts;
  bool learns = true;       // false: forward pass for the metrics alone, no gradient
  std::int64_t rows = 0;    // tokens that go through the model
  std::int64_t tokens = 0;  // drawn tokens, each a target of the loss
};

// How the micro-batches of a step are dealt to lanes (lane_sum.hpp).
struct Dealing {
  std::int64_t lanes = 1;
  bool whole_groups = false;  // the loss compares samples of a group, so no group may be split
};

struct MiniBatch {
  std::vector<MicroBatch> micro_batches;
  std::int64_t tokens = 0;
};

struct UpdatePlan {
  std::vector<MiniBatch> mini_batches;
  std::int64_t tokens = 0, rows = 0, micro_batches = 0;
  std::int64_t samples = 0;  // episodes, of which each is one sample unless it forks

  UpdateCounts counts() const {
    return {static_cast<double>(mini_batches.size()), static_cast<double>(tokens),
            static_cast<double>(samples)};
  }
};

// Rows of samples [begin, end) of `group`: the prompt once, then every sample's row (with contexts)
// without its last token, since no log-prob is needed after it.
std::int64_t part_rows(const experience::Group& group, std::size_t begin, std::size_t end);

// Takes the groups in ticket order and cuts them into `mini_batches` mini-batches whose numbers of
// groups differ by at most one (fewer mini-batches when there are fewer groups). Micro-batches take
// whole groups and are about equal in size; a group that is larger than a micro-batch is split
// between samples, in order. Groups whose `learns` is false come last in their mini-batch, in
// micro-batches of their own; an empty `learns` means that all learn.
//
// With several lanes, the groups that learn make a multiple of `lanes` micro-batches, whose largest
// is as small as can be, and so do the others. Where whole groups would leave a lane empty, groups
// are split between samples; if there are fewer samples than that, each is a micro-batch.
//
// Errors: kInvalidArgument (no groups, a group without samples, an empty prompt or response, two
// groups of one slot), kConfig (one sample with its prompt is longer than micro_tokens_max).
core::Result<UpdatePlan> plan_update(const std::vector<experience::Group>& groups,
                                     const BatchSettings& batch,
                                     const std::vector<bool>& learns = {},
                                     const Dealing& dealing = {});

}  // namespace troupe::learn
