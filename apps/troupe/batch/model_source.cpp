#include "apps/troupe/batch/model_source.hpp"

#include "actors/reward/model_reward.hpp"
#include "runtime/model/params.hpp"

namespace troupe::app {

core::Result<std::unique_ptr<actors::RewardSource>> model_source(const std::string& name,
                                                                 bool stored,
                                                                 data::DatasetColumns columns,
                                                                 core::TeamRunner& team) {
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(name));
  return actors::make_model_reward(
      {.folder = folder, .normalise = stored, .columns = std::move(columns)}, team);
}

}  // namespace troupe::app
