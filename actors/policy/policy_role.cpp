#include "actors/policy/policy_role.hpp"

#include "actors/protocol/ask.hpp"
#include "actors/protocol/weight_offer.hpp"

#include <iterator>
#include <numeric>

namespace troupe::actors::policy {
namespace {

using CriticReply = async::Oneshot<core::Result<Trained>>;

// Has the critic learn, alongside whatever the policy does, and puts its reply into `to`.
async::task<void> bring_critic_reply(RoleContext context,
                                     std::string peer,
                                     std::uint64_t update,
                                     learn::ValueTargets targets,
                                     std::shared_ptr<CriticReply> to) {
  to->set(co_await train_critic(std::move(context), std::move(peer), update, std::move(targets)));
}

}  // namespace

PolicyRole::PolicyRole(RoleContext context,
                       std::unique_ptr<learn::PolicyTrainer> trainer,
                       std::shared_ptr<weights::WeightPublisher> publisher,
                       std::string data_peer,
                       std::filesystem::path tokenizer_from,
                       CriticLink critic,
                       store::Disk& disk)
    : TrainerRole(
          std::move(context), std::move(trainer), "policy", std::move(tokenizer_from), disk),
      publisher_(std::move(publisher)),
      data_peer_(std::move(data_peer)),
      critic_(std::move(critic)) {}

async::task<core::Result<TrainGroups>> PolicyRole::fetch(TrainUpdate request) {
  auto groups = std::make_shared<std::vector<experience::Group>>();
  FetchExperience fetch{request.update, std::vector<std::uint32_t>(request.groups)};
  std::iota(fetch.slots.begin(), fetch.slots.end(), 0u);
  while (!fetch.slots.empty()) {
    TROUPE_CO_TRY_ASSIGN(page, co_await ask(context_, data_peer_, fetch));
    const std::size_t count = page.groups.size();
    if (count == 0 || count > fetch.slots.size()) {
      co_return core::fail(core::ErrorCode::kData, "this page of experience was not asked for");
    }
    std::move(page.groups.begin(), page.groups.end(), std::back_inserter(*groups));
    fetch.slots.erase(fetch.slots.begin(),
                      fetch.slots.begin() + static_cast<std::ptrdiff_t>(count));
  }
  co_return groups;
}

async::task<core::Result<learn::UpdateReport>> PolicyRole::learn_with_critic(
    std::uint64_t update, learn::ValueTargets targets) {
  auto answer = std::make_shared<CriticReply>();
  context_.scope->spawn(
      "critic", bring_critic_reply(context_, critic_.peer, update, std::move(targets), answer));
  std::optional<core::Result<Trained>> critic;
  if (critic_.in_turn) critic.emplace(co_await CriticReply::take(answer));
  if (critic && !*critic) co_return critic->failure();
  context_.set_idle("waiting for groups");
  auto job = [trainer = trainer_]() { return trainer->learn(); };
  TROUPE_CO_TRY_ASSIGN(report, co_await work_.run("train", std::move(job)));
  context_.set_idle("waiting for the critic");
  if (!critic) critic.emplace(co_await CriticReply::take(answer));
  context_.set_idle("waiting for groups");
  if (!*critic) co_return critic->failure();
  for (auto& metric : (*critic)->metrics)
    report.metrics.push_back(std::move(metric));
  co_return report;
}

async::task<core::Result<learn::UpdateReport>> PolicyRole::learn(std::uint64_t update,
                                                                 TrainGroups groups) {
  if (critic_.peer.empty()) {
    begin_update(update);
    auto unchanged = std::make_shared<bool>(false);
    auto job = [trainer = trainer_, groups, unchanged]() -> core::Result<learn::UpdateReport> {
      const auto prepared = trainer->prepare(std::move(*groups));
      *unchanged = !prepared;
      if (!prepared) return prepared.failure();
      return trainer->learn();
    };
    auto learned_from = co_await work_.run("train", std::move(job));
    if (*unchanged) abandon_update();
    co_return learned_from;
  }
  context_.set_idle("waiting for the critic");
  auto valued = co_await fetch_values(context_, critic_.peer, update, groups);
  context_.set_idle("waiting for groups");
  if (!valued) co_return valued.failure();
  begin_update(update);
  auto job = [trainer = trainer_, groups]() { return trainer->prepare(std::move(*groups)); };
  auto targets = co_await work_.run("prepare", std::move(job));
  if (!targets) {
    abandon_update();
    co_return targets.failure();
  }
  if (critic_.in_turn) context_.set_idle("waiting for the critic");
  auto report = co_await learn_with_critic(update, std::move(*targets));
  context_.set_idle("waiting for groups");
  co_return report;
}

async::task<core::Result<Trained>> PolicyRole::on(TrainUpdate request) {
  const auto turn = co_await turns_.take();
  TROUPE_CO_TRY_ASSIGN(known, answered(request.update));
  if (known) co_return *known;
  TROUPE_CO_TRY(check_whole());
  TROUPE_CO_TRY_ASSIGN(groups, co_await fetch(request));
  TROUPE_CO_TRY_ASSIGN(report, co_await learn(request.update, std::move(groups)));
  co_return learned(request.update, std::move(report));
}

async::task<core::Result<Published>> PolicyRole::on(PublishWeights request) {
  TROUPE_CO_TRY_ASSIGN(version, version_after(request.updates));
  auto job = [trainer = trainer_, publisher = publisher_]() -> core::Result<Published> {
    const weights::Offer offer = offer_of(trainer);
    TROUPE_TRY_ASSIGN(at, publisher->publish(offer));
    return Published{offer.version, std::move(at)};
  };
  auto published = co_await work_.run("publish", std::move(job));
  if (!published) co_return published;
  version_ = published->version;
  published->version = version;
  co_return published;
}

}  // namespace troupe::actors::policy
