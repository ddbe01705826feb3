#include "apps/session/roles/role_loader.hpp"

#include "actors/environment/environment_role.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "apps/cli/words.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/roles/environment_parts.hpp"
#include "apps/session/roles/run_settings.hpp"
#include "apps/session/roles/scorer_roles.hpp"
#include "runtime/config/read.hpp"

namespace troupe::session {
namespace {

using cluster::RoleRecipe;

Result<config::TrainConfig> config_of(const actors::Spawn& spawn) {
  TROUPE_TRY_ASSIGN(texts, config::read_yaml(spawn.config, "the run's configuration"));
  config::Builder builder(run_table());
  TROUPE_TRY(builder.set_all(texts));
  return builder.finish();
}

// Refuses the role when its files on this host differ from the run's.
Result<void> check_contents(const Hashing& hashing, const Hashes& theirs) {
  const auto& ours = hashing.get();
  if (!ours) return ours.failure();
  for (const ContentDifference& one : differences(hashing.contents(), theirs, *ours)) {
    const std::string text = "the SHA-256 of " + one.name + " (" + one.place.string() + ") is " +
                             one.ours + "... here and " + one.theirs + "... where the run is";
    if (!one.only_warns) {
      return core::fail(ErrorCode::kConfig, text, "copy the file of the run");
    }
    cli::warn(text);
  }
  return {};
}

}  // namespace

RoleLoader::RoleLoader(Reach reach,
                       actors::gang::AskToMeet meet,
                       weights::RelayOptions relays,
                       std::optional<collective::GatewayWay> gateway)
    : trainers_(shared_, threads_, std::move(meet), std::move(gateway)),
      generators_(shared_, threads_, std::move(reach), std::move(relays)) {}

RoleLoader::RoleLoader(OneProcess shared) : RoleLoader(Reach()) {
  shared_ = std::move(shared);
}

RoleLoader::~RoleLoader() = default;

async::task<Result<RoleRecipe>> RoleLoader::make(actors::Spawn spawn) {
  auto job = [this, spawn]() { return load(spawn); };
  auto recipe = co_await threads_.compute().run(std::move(job), async::DeviceQueue::kLoad);
  co_return recipe;
}

std::string RoleLoader::wedged() const {
  const std::chrono::seconds limit{job_limit_s_.load()};
  return limit.count() == 0 ? "" : threads_.wedged(limit);
}

// Loads a role; hashes the files that it reads at the same time.
Result<RoleRecipe> RoleLoader::load(const actors::Spawn& spawn) {
  auto config = shared_.config;
  if (!config) {
    TROUPE_TRY_SET(config, config_of(spawn));
  }
  job_limit_s_ = config->cluster.job_limit_s;
  const Hashes theirs = hashes_of_settings(spawn.settings);
  std::vector<Content> contents;
  if (!theirs.empty()) {
    TROUPE_TRY_SET(contents, contents_of_role(*config, spawn.kind, spawn.name));
  }
  const RoleOrder order{*config, spawn};
  const Hashing hashing(std::move(contents));
  auto recipe = load_kind(order);
  if (recipe && !theirs.empty()) TROUPE_TRY(check_contents(hashing, theirs));
  if (recipe) recipe->arithmetic = arithmetic_of(order, recipe->team);
  return recipe;
}

std::string RoleLoader::arithmetic_of(const RoleOrder& order, core::TeamRunner* team) {
  const std::string& kind = order.spawn.kind;
  const bool frozen = kind == "reference" || (kind == "teacher" && team != nullptr);
  if (kind != "policy" && kind != "generator" && !frozen) return "";
  return threads_.class_of(order, *team);
}

Result<RoleRecipe> RoleLoader::load_kind(const RoleOrder& order) {
  const std::string& kind = order.spawn.kind;
  if (kind == "policy") return trainers_.policy(order);
  if (kind == "critic") return trainers_.critic(order);
  if (kind == "generator") return generators_.generator(order);
  if (kind == "reference") return reference_recipe(order, threads_, trainers_.take_first_weights());
  if (kind == "teacher") return teacher_recipe(order, threads_);
  if (kind == "reward") return reward_recipe(order, threads_, shared_);
  if (kind == "environment" || kind == actors::kAttachedEnvironment) return environment(order);
  return core::fail(ErrorCode::kUnsupported, "this node cannot run a role of kind " + kind);
}

Result<RoleRecipe> RoleLoader::environment(const RoleOrder& order) {
  const config::TrainConfig& form = own_environment_ ? *own_environment_ : order.config;
  TROUPE_TRY_ASSIGN(parts, make_environment(order.config, form));
  auto factory = actors::factory_of<actors::environment::EnvironmentRole>(
      [parts = std::move(parts)](actors::RoleContext context) mutable {
        return std::make_shared<actors::environment::EnvironmentRole>(std::move(context),
                                                                      std::move(parts));
      });
  return RoleRecipe{std::move(factory), &threads_.named("environment"), nullptr};
}

}  // namespace troupe::session
