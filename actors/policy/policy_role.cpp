#include "actors/policy/policy_role.hpp"

#include "actors/protocol/ask.hpp"
#include "runtime/model/params.hpp"

#include <iterator>
#include <numeric>

namespace troupe::actors {
PolicyRole::PolicyRole(RoleContext context,
                       std::unique_ptr<learn::PolicyTrainer> trainer,
                       std::shared_ptr<weights::WeightPublisher> publisher,
                       std::string data_peer,
                       std::filesystem::path tokenizer_from,
                       CriticLink critic)
    : TrainerRole(std::move(context), std::move(trainer), "policy", std::move(tokenizer_from)),
      publisher_(std::move(publisher)),
      data_peer_(std::move(data_peer)),
      critic_(std::move(critic)) {}

void PolicyRole::idle_for(const char* cause) {
  if (context_.activity != nullptr) context_.activity->set_idle(cause);
}

async::task<core::Result<TrainGroups>> PolicyRole::fetch(TrainUpdate request) {
  auto groups = std::make_shared<std::vector<experience::Group>>();
  FetchExperience fetch{request.update, std::vector<std::uint32_t>(request.groups)};
  std::iota(fetch.slots.begin(), fetch.slots.end(), 0u);
  while (!fetch.slots.empty()) {
    auto page = co_await ask(context_, data_peer_, fetch);
    if (!page) co_return page.failure();
    const std::size_t count = page->groups.size();
    if (count == 0 || count > fetch.slots.size()) {
      co_return core::fail(core::ErrorCode::kData, "a page of experience that was not asked for");
    }
    std::move(page->groups.begin(), page->groups.end(), std::back_inserter(*groups));
    fetch.slots.erase(fetch.slots.begin(), fetch.slots.begin() + static_cast<std::ptrdiff_t>(count));
  }
  co_return groups;
}

// The critic's answer to a request that runs beside a job of the device thread.
struct PolicyRole::CriticAnswer {
  using Reply = async::Oneshot<core::Result<Trained>>;
  static async::task<void> bring(RoleContext context,
                                 std::string peer,
                                 std::uint64_t update,
                                 learn::ValueTargets targets,
                                 std::shared_ptr<Reply> to) {
    to->set(co_await train_critic(std::move(context), std::move(peer), update, std::move(targets)));
  }
};

async::task<core::Result<learn::UpdateReport>> PolicyRole::learn_with_critic(
    std::uint64_t update, learn::ValueTargets targets) {
  auto answer = std::make_shared<CriticAnswer::Reply>();
  context_.scope->spawn(
      "critic", CriticAnswer::bring(context_, critic_.peer, update, std::move(targets), answer));
  std::optional<core::Result<Trained>> critic;
  if (critic_.in_turn) critic.emplace(co_await CriticAnswer::Reply::take(answer));
  if (critic && !*critic) co_return critic->failure();
  idle_for("waiting for groups");
  auto trainer = trainer_;
  auto job = [trainer]() { return trainer->learn(); };
  auto report = co_await work_.run("train", std::move(job));
  if (!report) co_return report.failure();
  idle_for("waiting for the critic");
  if (!critic) critic.emplace(co_await CriticAnswer::Reply::take(answer));
  idle_for("waiting for groups");
  if (!*critic) co_return critic->failure();
  for (auto& metric : (*critic)->metrics)
    report->metrics.push_back(std::move(metric));
  co_return std::move(*report);
}

async::task<core::Result<learn::UpdateReport>> PolicyRole::learn(std::uint64_t update,
                                                                 TrainGroups groups) {
  auto trainer = trainer_;
  if (critic_.peer.empty()) {
    begin_update(update);
    auto job = [trainer, groups]() { return trainer->update(std::move(*groups)); };
    auto report = co_await work_.run("train", std::move(job));
    co_return report;
  }
  idle_for("waiting for the critic");
  auto valued = co_await fetch_values(context_, critic_.peer, update, groups);
  idle_for("waiting for groups");
  if (!valued) co_return valued.failure();
  begin_update(update);
  auto job = [trainer, groups]() { return trainer->prepare(std::move(*groups)); };
  auto targets = co_await work_.run("prepare", std::move(job));
  if (!targets) co_return targets.failure();
  if (critic_.in_turn) idle_for("waiting for the critic");
  auto report = co_await learn_with_critic(update, std::move(*targets));
  idle_for("waiting for groups");
  co_return report;
}

async::task<core::Result<Trained>> PolicyRole::on(TrainUpdate request) {
  auto groups = co_await fetch(request);
  if (!groups) co_return groups.failure();
  auto report = co_await learn(request.update, std::move(*groups));
  if (!report) co_return report.failure();
  co_return learned(std::move(*report));
}

async::task<core::Result<Published>> PolicyRole::on(PublishWeights) {
  auto trainer = trainer_;
  auto publisher = publisher_;
  auto job = [trainer, publisher]() -> core::Result<Published> {
    weights::Offer offer;
    offer.version = trainer->version();
    offer.master = &trainer->master();
    offer.packed = [trainer] { return trainer->packed(); };
    TROUPE_TRY_ASSIGN(at, publisher->publish(offer));
    return Published{offer.version, std::move(at)};
  };
  auto published = co_await work_.run("publish", std::move(job));
  if (published) version_ = published->version;
  co_return published;
}

async::task<core::Result<Ack>> PolicyRole::on(SaveModel request) {
  auto trainer = trainer_;
  const std::filesystem::path folder = request.folder;
  const std::filesystem::path tokenizer = tokenizer_from_;
  // With LoRA the model is the merged one, and the adapter lies beside it.
  auto job = [trainer, folder, tokenizer]() -> core::Result<void> {
    if (trainer->average() != nullptr) {
      TROUPE_TRY(model::save_model(*trainer->average(), folder.parent_path() / "ema",
                                   model::StorageDtype::kF32, tokenizer));
    }
    TROUPE_TRY(model::save_model(trainer->master(), folder, model::StorageDtype::kF32, tokenizer));
    if (!trainer->has_adapter()) return {};
    return trainer->save_adapter(folder.parent_path() / "adapter", tokenizer.string());
  };
  TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
  co_return Ack{};
}

}  // namespace troupe::actors
