// Reward sets: how they change and who hears of it.
#include "actors/protocol/codec_parts.hpp"

#include <cmath>

namespace troupe::actors {
namespace {

// A weight that is no number would poison every score it touches.
core::Result<double> weight_of(double weight, const std::string& name) {
  if (std::isfinite(weight)) return weight;
  return core::fail(core::ErrorCode::kData, "the weight of reward " + name + " is not finite");
}

}  // namespace

template <>
void Codec<SetRewards>::write(const SetRewards& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initSetRewards();
  out.setSet(message.set);
  out.setFromUpdate(message.from_update);
  auto members = out.initMembers(count_of(message.members));
  for (unsigned i = 0; i < members.size(); ++i) {
    members[i].setName(message.members[i].name);
    members[i].setPeer(message.members[i].peer);
    members[i].setWeight(message.members[i].weight);
  }
  auto lost = out.initLost(count_of(message.lost));
  for (unsigned i = 0; i < lost.size(); ++i)
    lost.set(i, message.lost[i]);
}
template <>
bool Codec<SetRewards>::is(schema::Envelope::Reader envelope) {
  return envelope.isSetRewards();
}
template <>
core::Result<SetRewards> Codec<SetRewards>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getSetRewards();
  SetRewards message;
  message.set = in.getSet();
  message.from_update = in.getFromUpdate();
  for (const auto member : in.getMembers()) {
    const std::string name = text_of(member.getName());
    TROUPE_TRY_ASSIGN(weight, weight_of(member.getWeight(), name));
    message.members.push_back({name, text_of(member.getPeer()), weight});
  }
  for (const auto name : in.getLost())
    message.lost.push_back(text_of(name));
  return message;
}

#define TROUPE_REWARD_NAME_CODEC(Message)                                                  \
  template <>                                                                              \
  void Codec<Message>::write(const Message& message, schema::Envelope::Builder envelope) { \
    envelope.init##Message().setName(message.name);                                        \
  }                                                                                        \
  template <>                                                                              \
  bool Codec<Message>::is(schema::Envelope::Reader envelope) {                             \
    return envelope.is##Message();                                                         \
  }                                                                                        \
  template <>                                                                              \
  core::Result<Message> Codec<Message>::read(schema::Envelope::Reader envelope) {          \
    return Message{text_of(envelope.get##Message().getName())};                            \
  }

TROUPE_REWARD_NAME_CODEC(DrainReward)
TROUPE_REWARD_NAME_CODEC(DetachReward)
#undef TROUPE_REWARD_NAME_CODEC

template <>
void Codec<AttachReward>::write(const AttachReward& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initAttachReward();
  out.setName(message.name);
  out.setPeer(message.peer);
  out.setWeight(message.weight);
}
template <>
bool Codec<AttachReward>::is(schema::Envelope::Reader envelope) {
  return envelope.isAttachReward();
}
template <>
core::Result<AttachReward> Codec<AttachReward>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getAttachReward();
  AttachReward message{text_of(in.getName()), text_of(in.getPeer()), 0};
  TROUPE_TRY_ASSIGN(weight, weight_of(in.getWeight(), message.name));
  message.weight = weight;
  return message;
}

template <>
void Codec<ReweightReward>::write(const ReweightReward& message,
                                  schema::Envelope::Builder envelope) {
  auto out = envelope.initReweightReward();
  out.setName(message.name);
  out.setWeight(message.weight);
}
template <>
bool Codec<ReweightReward>::is(schema::Envelope::Reader envelope) {
  return envelope.isReweightReward();
}
template <>
core::Result<ReweightReward> Codec<ReweightReward>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getReweightReward();
  ReweightReward message{text_of(in.getName()), 0};
  TROUPE_TRY_ASSIGN(weight, weight_of(in.getWeight(), message.name));
  message.weight = weight;
  return message;
}

template <>
void Codec<RewardsChanged>::write(const RewardsChanged& message,
                                  schema::Envelope::Builder envelope) {
  auto out = envelope.initRewardsChanged();
  out.setSet(message.set);
  out.setFromUpdate(message.from_update);
}
template <>
bool Codec<RewardsChanged>::is(schema::Envelope::Reader envelope) {
  return envelope.isRewardsChanged();
}
template <>
core::Result<RewardsChanged> Codec<RewardsChanged>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getRewardsChanged();
  return RewardsChanged{in.getSet(), in.getFromUpdate()};
}

}  // namespace troupe::actors
