#include "actors/gang/follower_role.hpp"

#include "actors/protocol/training_rows.hpp"
#include "actors/protocol/weight_offer.hpp"

namespace troupe::actors::gang {
namespace {

core::Failure no_call(GangCall call) {
  return core::fail(ErrorCode::kData, "the trainer of this rank has no call " +
                                          std::to_string(static_cast<std::uint32_t>(call)));
}

// The calls that all trainers have.
template <class Trainer>
core::Result<void> obey_files(Trainer& trainer, const GangCommand& command) {
  switch (command.call) {
    case GangCall::kSaveState:
      return trainer.save_state(command.folder);
    case GangCall::kLoadState:
      return trainer.load_state(command.folder);
    case GangCall::kSaveModel:
      return trainer.save_model(command.folder, command.other_folder);
    default:
      return no_call(command.call);
  }
}

core::Result<void> obey_policy(const std::shared_ptr<learn::PolicyTrainer>& trainer,
                               weights::WeightPublisher& publisher,
                               GangCommand command) {
  switch (command.call) {
    case GangCall::kPrepare:
      TROUPE_TRY(trainer->prepare(std::move(command.groups)));
      return {};
    case GangCall::kLearn:
      TROUPE_TRY(trainer->learn());
      return {};
    case GangCall::kPublish:
      TROUPE_TRY(publisher.publish(offer_of(trainer)));
      return {};
    default:
      return obey_files(*trainer, command);
  }
}

core::Result<void> obey_critic(learn::CriticTrainer& trainer, const GangCommand& command) {
  switch (command.call) {
    case GangCall::kValues:
      TROUPE_TRY(trainer.values(command.groups));
      return {};
    case GangCall::kTrain:
      TROUPE_TRY(trainer.update(command.groups, command.old, command.returns));
      return {};
    default:
      return obey_files(trainer, command);
  }
}

core::Result<void> obey_supervised(learn::SupervisedTrainer& trainer, const GangCommand& command) {
  switch (command.call) {
    case GangCall::kStep:
      TROUPE_TRY(trainer.step(views_of(command.rows)));
      return {};
    case GangCall::kEvaluate:
      TROUPE_TRY(trainer.evaluate(views_of(command.rows)));
      return {};
    default:
      return obey_files(trainer, command);
  }
}

}  // namespace

Obey obeying(std::shared_ptr<learn::SupervisedTrainer> trainer) {
  return [trainer = std::move(trainer)](GangCommand command) {
    return obey_supervised(*trainer, command);
  };
}

Obey obeying(std::shared_ptr<learn::PolicyTrainer> trainer,
             std::shared_ptr<weights::WeightPublisher> publisher) {
  return [trainer = std::move(trainer), publisher = std::move(publisher)](GangCommand command) {
    return obey_policy(trainer, *publisher, std::move(command));
  };
}

Obey obeying(std::shared_ptr<learn::CriticTrainer> trainer) {
  return [trainer = std::move(trainer)](GangCommand command) {
    return obey_critic(*trainer, command);
  };
}

FollowerRole::FollowerRole(RoleContext context,
                           Obey obey,
                           std::shared_ptr<GangLink> gang,
                           std::function<void(const std::string&)> note)
    : context_(std::move(context)),
      gang_(std::move(gang)),
      obey_(std::move(obey)),
      note_(std::move(note)),
      work_(context_, "waiting for rank 0") {}

async::task<core::Result<wire::Frame>> FollowerRole::handle(wire::Frame) {
  co_return core::fail(ErrorCode::kUnsupported,
                       "this rank does what rank 0 of its gang tells it, and answers no one else");
}

// An error that all ranks know of ends nothing: rank 0 reports it, and may go on. After any other
// the ranks are no longer at the same place.
FollowerRole::Outcome FollowerRole::do_one(const Obey& obey,
                                           GangLink& gang,
                                           GangCommand command,
                                           std::string& error) {
  const core::Result<void> mine = obey(std::move(command));
  if (!mine) error = mine.error().message;
  bool together = true;
  const core::Result<void> all = gang.agree(mine, &together);
  if (!all && error.empty()) error = all.error().message;
  return together;
}

async::task<core::Result<void>> FollowerRole::run() {
  for (;;) {
    auto hear = [gang = gang_] { return gang->hear(); };
    auto heard = co_await context_.device->run(std::move(hear), async::DeviceQueue::kWait);
    if (!heard) break;  // the rank that ended the gang has said why
    auto command = command_of(*heard);
    if (!command) co_return command.failure();
    ++calls_;
    const char* const word = word_of(command->call);
    auto error = std::make_shared<std::string>();
    auto job = [this, error, command = std::move(*command)]() mutable {
      return do_one(obey_, *gang_, std::move(command), *error);
    };
    auto done = co_await work_.run(word, std::move(job));
    if (!error->empty() && note_) note_(context_.transport->identity().self + ": " + *error);
    if (!done || !*done) break;
  }
  over_ = true;
  context_.set_idle("its gang is over");
  obey_ = nullptr;
  gang_.reset();
  co_return core::Result<void>();
}

}  // namespace troupe::actors::gang
