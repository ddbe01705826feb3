// The shell of the policy role.
#include "actors/policy/policy_role.hpp"

#include "actors/protocol/ask.hpp"
#include "runtime/model/params.hpp"

namespace troupe::actors {
namespace {

learn::TrainGroup train_group(ExperienceGroup group) {
  learn::TrainGroup result;
  result.ticket = group.ticket;
  result.prompt = std::move(group.prompt);
  for (ExperienceSample& sample : group.samples) {
    learn::TrainSample one;
    one.tokens = std::move(sample.tokens);
    one.behaviour = std::move(sample.behaviour);
    one.versions = std::move(sample.versions);
    one.reference = std::move(sample.reference);
    one.score = sample.score;
    one.truncated = sample.finish == "length";
    result.samples.push_back(std::move(one));
  }
  return result;
}

}  // namespace

PolicyRole::PolicyRole(RoleContext context,
                       std::unique_ptr<learn::PolicyTrainer> trainer,
                       std::shared_ptr<weights::WeightPublisher> publisher,
                       std::string data_peer,
                       std::filesystem::path tokenizer_from)
    : context_(std::move(context)),
      trainer_(std::move(trainer)),
      publisher_(std::move(publisher)),
      data_peer_(std::move(data_peer)),
      tokenizer_from_(std::move(tokenizer_from)) {
  if (context_.activity != nullptr) context_.activity->set_idle("waiting for groups");
}

template <class Job>
async::task<std::invoke_result_t<Job&>> PolicyRole::work(const char* what, Job job) {
  doing_ = what;
  auto timed = [activity = context_.activity, what, job = std::move(job)]() mutable {
    const MaybeBusy busy(activity, what);
    return job();
  };
  auto result = co_await context_.device->run(std::move(timed));
  doing_.clear();
  co_return result;
}

std::string PolicyRole::state() const {
  return doing_.empty() ? "waiting for groups" : doing_;
}

wire::Amounts PolicyRole::amounts() const {
  return {{"version", static_cast<double>(version_)}, {"updates", static_cast<double>(updates_)}};
}

async::task<core::Result<Trained>> PolicyRole::on(TrainUpdate request) {
  std::vector<learn::TrainGroup> groups;
  while (groups.size() < request.groups) {
    FetchExperience fetch{request.update, static_cast<std::uint32_t>(groups.size())};
    auto page = co_await ask(context_, data_peer_, fetch);
    if (!page) co_return page.failure();
    if (page->groups.empty()) {
      co_return core::fail(core::ErrorCode::kData, "an empty page of experience");
    }
    for (ExperienceGroup& group : page->groups)
      groups.push_back(train_group(std::move(group)));
  }
  auto trainer = trainer_;
  auto job = [trainer, groups]() { return trainer->update(groups); };
  auto report = co_await work("train", std::move(job));
  if (!report) co_return report.failure();
  version_ = report->version;
  ++updates_;
  Trained reply;
  reply.version = report->version;
  reply.metrics = std::move(report->metrics);
  co_return reply;
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
    WeightSource source{at.host_id, at.socket, at.tcp_host, at.tcp_port, at.key};
    return Published{offer.version, std::move(source)};
  };
  auto published = co_await work("publish", std::move(job));
  if (published) version_ = published->version;
  co_return published;
}

async::task<core::Result<Ack>> PolicyRole::on(SaveState request) {
  auto trainer = trainer_;
  const std::filesystem::path folder = std::filesystem::path(request.folder) / "policy";
  auto job = [trainer, folder]() -> core::Result<void> {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      return core::fail(core::ErrorCode::kResources,
                        "cannot make " + folder.string() + ": " + error.message());
    }
    return trainer->save_state(folder);
  };
  TROUPE_CO_TRY(co_await work("save", std::move(job)));
  co_return Ack{};
}

async::task<core::Result<Ack>> PolicyRole::on(LoadState request) {
  auto trainer = trainer_;
  const std::filesystem::path folder = std::filesystem::path(request.folder) / "policy";
  auto job = [trainer, folder]() { return trainer->load_state(folder); };
  TROUPE_CO_TRY(co_await work("load", std::move(job)));
  co_return Ack{};
}

async::task<core::Result<Ack>> PolicyRole::on(SaveModel request) {
  auto trainer = trainer_;
  const std::filesystem::path folder = request.folder;
  const std::filesystem::path tokenizer = tokenizer_from_;
  auto job = [trainer, folder, tokenizer]() {
    return model::save_model(trainer->master(), folder, model::StorageDtype::kF32, tokenizer);
  };
  TROUPE_CO_TRY(co_await work("save", std::move(job)));
  co_return Ack{};
}

}  // namespace troupe::actors
