// The shell of the critic role.
#include "actors/critic/critic_role.hpp"

#include "runtime/model/params.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::actors {
namespace {

using core::ErrorCode;

}  // namespace

CriticRole::CriticRole(RoleContext context,
                       std::unique_ptr<learn::CriticTrainer> trainer,
                       std::filesystem::path tokenizer_from)
    : context_(std::move(context)),
      trainer_(std::move(trainer)),
      tokenizer_from_(std::move(tokenizer_from)),
      held_(std::make_shared<Held>()),
      work_(context_, "waiting for groups") {}

wire::Amounts CriticRole::amounts() const {
  return {{"version", static_cast<double>(version_)}, {"updates", static_cast<double>(updates_)}};
}

core::Result<void> CriticRole::check_page(const char* what,
                                          std::uint64_t update,
                                          std::uint32_t cursor,
                                          std::size_t held) const {
  if (update == held_->update && cursor == held) return {};
  return core::fail(ErrorCode::kInvalidArgument,
                    std::string(what) + " of update " + std::to_string(update + 1) +
                        " from group " + std::to_string(cursor) + " on, but the critic holds " +
                        std::to_string(held) + " of update " + std::to_string(held_->update + 1));
}

async::task<core::Result<CriticValues>> CriticRole::on(ScoreValues request) {
  if (request.cursor == 0) {
    held_ = std::make_shared<Held>();
    held_->update = request.update;
  }
  TROUPE_CO_TRY(check_page("groups", request.update, request.cursor, held_->groups.size()));
  auto held = held_;
  auto trainer = trainer_;
  auto page =
      std::make_shared<std::vector<experience::Group>>(std::move(request.groups));
  auto job = [trainer, page]() { return trainer->values(*page); };
  auto values = co_await work_.run("value", std::move(job));
  if (!values) co_return values.failure();
  CriticValues reply;
  for (std::size_t g = 0; g < page->size(); ++g) {
    reply.groups.push_back({(*values)[g]});
    held->groups.push_back(std::move((*page)[g]));
    held->values.push_back(std::move((*values)[g]));
  }
  co_return reply;
}

async::task<core::Result<Ack>> CriticRole::on(PutReturns request) {
  TROUPE_CO_TRY(check_page("returns", request.update, request.cursor, held_->returns.size()));
  for (GroupValues& group : request.groups)
    held_->returns.push_back(std::move(group.samples));
  co_return Ack{};
}

async::task<core::Result<Trained>> CriticRole::on(TrainCritic request) {
  TROUPE_CO_TRY(check_page("training", request.update, request.groups, held_->groups.size()));
  auto held = std::move(held_);
  held_ = std::make_shared<Held>();
  auto trainer = trainer_;
  inside_ = request.update;
  auto job = [trainer, held]() {
    return trainer->update(held->groups, held->values, held->returns);
  };
  auto report = co_await work_.run("train", std::move(job));
  if (!report) co_return report.failure();
  inside_.reset();
  version_ = report->version;
  ++updates_;
  Trained reply;
  reply.version = report->version;
  reply.metrics = std::move(report->metrics);
  co_return reply;
}

async::task<core::Result<Ack>> CriticRole::on(SaveState request) {
  if (inside_) {
    co_return core::fail(ErrorCode::kInvalidArgument, "the critic stands half-way through update " +
                                                          std::to_string(*inside_ + 1));
  }
  auto trainer = trainer_;
  const std::filesystem::path folder = std::filesystem::path(request.folder) / "critic";
  auto job = [trainer, folder]() -> core::Result<void> {
    std::error_code error;
    if (!std::filesystem::exists(folder.parent_path(), error)) {
      return core::fail(ErrorCode::kResources,
                        "the critic does not see the checkpoint folder " +
                            folder.parent_path().string() +
                            "; play it on a host that shares the run folder");
    }
    TROUPE_TRY(store::make_folder(folder));
    return trainer->save_state(folder);
  };
  TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
  co_return Ack{};
}

async::task<core::Result<Ack>> CriticRole::on(LoadState request) {
  auto trainer = trainer_;
  const std::filesystem::path folder = std::filesystem::path(request.folder) / "critic";
  auto job = [trainer, folder]() { return trainer->load_state(folder); };
  TROUPE_CO_TRY(co_await work_.run("load", std::move(job)));
  held_ = std::make_shared<Held>();
  inside_.reset();
  co_return Ack{};
}

async::task<core::Result<Ack>> CriticRole::on(SaveModel request) {
  auto trainer = trainer_;
  const std::filesystem::path folder = request.folder;
  const std::filesystem::path tokenizer = tokenizer_from_;
  auto job = [trainer, folder, tokenizer]() {
    return model::save_model(trainer->master(), folder, model::StorageDtype::kF32, tokenizer);
  };
  TROUPE_CO_TRY(co_await work_.run("save", std::move(job)));
  co_return Ack{};
}

}  // namespace troupe::actors
