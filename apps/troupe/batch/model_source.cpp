#include "apps/troupe/batch/model_source.hpp"

#include "actors/reward/model_reward.hpp"
#include "runtime/model/params.hpp"

namespace troupe::app {

core::Result<std::unique_ptr<actors::RewardSource>> model_source(const ModelSourceOptions& options,
                                                                 core::TeamRunner& team) {
  actors::ModelRewardOptions made;
  TROUPE_TRY_SET(made.folder, model::resolve_model(options.name));
  made.normalise = options.stored;
  made.columns = options.columns;
  return actors::make_model_reward(std::move(made), team);
}

}  // namespace troupe::app
