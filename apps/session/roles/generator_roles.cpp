#include "apps/session/roles/generator_roles.hpp"

#include "actors/generator/generator_role.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/end_tokens.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "kernels/ops.hpp"
#include "runtime/dialects/served_model.hpp"
#include "runtime/weights/remote_subscriber.hpp"

namespace troupe::session {

using actors::RoleContext;
using cluster::RoleRecipe;

Result<void> GeneratorRoles::load_text(const std::filesystem::path& folder,
                                       const model::ModelSpec& spec) {
  if (text_) return {};
  TROUPE_TRY_ASSIGN(tokenizer, text::Tokenizer::load(folder));
  eos_ = cli::end_tokens(tokenizer.eos_ids(), spec);
  text_ = std::make_shared<actors::generator::TokenizerText>(std::move(tokenizer));
  guides_ = dialects::guides_of(folder, spec.vocab);
  return {};
}

Result<RoleRecipe> GeneratorRoles::generator(const RoleOrder& order) {
  const config::TrainConfig& config = order.config;
  const std::string& name = order.spawn.name;
  const bool own_thread = shared_.generator_threads;
  TROUPE_TRY_ASSIGN(team, threads_.team_of(order, "generator", own_thread));
  TROUPE_TRY_ASSIGN(folder, trained_folder(config));
  TROUPE_TRY_ASSIGN(spec, model::read_spec(folder));
  TROUPE_TRY(load_text(folder, spec));
  actors::generator::EngineMaker maker = [limits = engine_limits(config), eos = eos_, text = text_,
                                          team](std::shared_ptr<const model::PackedWeights> first) {
    return engine::Engine::create(std::move(first), limits, eos, text.get(), *team);
  };
  auto subscriber = shared_.subscriber;
  if (!subscriber) {
    subscriber = std::make_shared<weights::RemoteWeightSubscriber>(
        spec, forward_dtype(config), weights::own_host_id(), team->memory(), relays_);
  }
  if (reach_) subscriber = reach_(std::move(subscriber));
  if (faults_ == nullptr) {
    TROUPE_TRY_SET(faults_, FaultPlan::from_environment());
  }
  if (faults_ != nullptr) {
    maker = faults_->around(name, std::move(maker));
    subscriber = faults_->around(name, std::move(subscriber));
  }
  async::DeviceThread& fetch = threads_.named(name + " weights");
  auto factory = actors::factory_of<actors::generator::GeneratorRole>(
      [maker, text = text_, subscriber, &fetch, sleeps = config.rollout.enable_sleep,
       guides = guides_](RoleContext context) {
        return std::make_shared<actors::generator::GeneratorRole>(
            std::move(context), maker, text, subscriber, fetch, "data/0", sleeps, guides);
      });
  async::DeviceThread& device =
      own_thread ? threads_.named(name, &kernels::flush_denormals) : threads_.compute();
  return RoleRecipe{std::move(factory), &device, team};
}

}  // namespace troupe::session
