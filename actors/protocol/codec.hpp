// Message values to envelope bodies and back. This folder's sources and runtime/wire are the only
// readers of the generated schema headers. Reading checks what the schema cannot: lengths that must
// agree and byte counts that must be whole numbers of elements (kData, naming the field).
#pragma once

#include "actors/protocol/messages.hpp"
#include "actors/protocol/messages_critic.hpp"
#include "actors/protocol/messages_node.hpp"
#include "actors/protocol/messages_rewards.hpp"
#include "runtime/core/result.hpp"
#include "schema/envelope.capnp.h"

namespace troupe::actors {

// Specialised for every message of messages.hpp: `write` fills the body of an envelope, `is` tells
// whether an envelope has this body, `read` takes it out (only after `is`).
template <class Message>
struct Codec {
  static void write(const Message& message, schema::Envelope::Builder envelope);
  static bool is(schema::Envelope::Reader envelope);
  static core::Result<Message> read(schema::Envelope::Reader envelope);
};

#define TROUPE_DECLARE_CODEC(Message)                                                     \
  template <>                                                                             \
  void Codec<Message>::write(const Message& message, schema::Envelope::Builder envelope); \
  template <>                                                                             \
  bool Codec<Message>::is(schema::Envelope::Reader envelope);                             \
  template <>                                                                             \
  core::Result<Message> Codec<Message>::read(schema::Envelope::Reader envelope);

TROUPE_DECLARE_CODEC(Ack)
TROUPE_DECLARE_CODEC(Tickets)
TROUPE_DECLARE_CODEC(IssueTickets)
TROUPE_DECLARE_CODEC(ReissueTickets)
TROUPE_DECLARE_CODEC(FetchPrompts)
TROUPE_DECLARE_CODEC(PromptTasks)
TROUPE_DECLARE_CODEC(PutGroup)
TROUPE_DECLARE_CODEC(AwaitGroups)
TROUPE_DECLARE_CODEC(GroupStatuses)
TROUPE_DECLARE_CODEC(FetchExperience)
TROUPE_DECLARE_CODEC(ExperiencePage)
TROUPE_DECLARE_CODEC(CommitUpdate)
TROUPE_DECLARE_CODEC(Generate)
TROUPE_DECLARE_CODEC(Generated)
TROUPE_DECLARE_CODEC(UpdateWeights)
TROUPE_DECLARE_CODEC(Score)
TROUPE_DECLARE_CODEC(Scores)
TROUPE_DECLARE_CODEC(ScoreLogprobs)
TROUPE_DECLARE_CODEC(Logprobs)
TROUPE_DECLARE_CODEC(TrainUpdate)
TROUPE_DECLARE_CODEC(Trained)
TROUPE_DECLARE_CODEC(PublishWeights)
TROUPE_DECLARE_CODEC(Published)
TROUPE_DECLARE_CODEC(AwaitPublished)
TROUPE_DECLARE_CODEC(ScoreValues)
TROUPE_DECLARE_CODEC(CriticValues)
TROUPE_DECLARE_CODEC(PutReturns)
TROUPE_DECLARE_CODEC(TrainCritic)
TROUPE_DECLARE_CODEC(SaveState)
TROUPE_DECLARE_CODEC(LoadState)
TROUPE_DECLARE_CODEC(SaveModel)
TROUPE_DECLARE_CODEC(CutGroups)
TROUPE_DECLARE_CODEC(SetRewards)
TROUPE_DECLARE_CODEC(DrainReward)
TROUPE_DECLARE_CODEC(AttachReward)
TROUPE_DECLARE_CODEC(ReweightReward)
TROUPE_DECLARE_CODEC(DetachReward)
TROUPE_DECLARE_CODEC(RewardsChanged)
TROUPE_DECLARE_CODEC(Join)
TROUPE_DECLARE_CODEC(Joined)
TROUPE_DECLARE_CODEC(Beat)
TROUPE_DECLARE_CODEC(QueryStatus)
TROUPE_DECLARE_CODEC(Status)
TROUPE_DECLARE_CODEC(Spawn)
TROUPE_DECLARE_CODEC(StopRole)

#undef TROUPE_DECLARE_CODEC

}  // namespace troupe::actors
