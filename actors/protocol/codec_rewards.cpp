// What rewards are asked and answer, and reward sets: how they change and who hears of it.
#include "actors/protocol/codec_parts.hpp"

#include <cmath>

namespace troupe::actors {
namespace {

// A weight that is no number would poison every score it touches.
core::Result<double> weight_of(double weight, const std::string& name) {
  if (std::isfinite(weight)) return weight;
  return core::fail(core::ErrorCode::kData, "the weight of reward " + name + " is not finite");
}

void write_reads(const RewardReads& reads, schema::RewardReads::Builder out) {
  out.setAllColumns(reads.all_columns);
  auto columns = out.initColumns(count_of(reads.columns));
  for (unsigned i = 0; i < columns.size(); ++i)
    columns.set(i, reads.columns[i]);
  out.setMessages(reads.messages);
  out.setTokens(reads.tokens);
}

RewardReads read_reads(schema::RewardReads::Reader in) {
  RewardReads reads{in.getAllColumns(), {}, in.getMessages(), in.getTokens()};
  for (const auto name : in.getColumns())
    reads.columns.push_back(text_of(name));
  return reads;
}

}  // namespace

template <>
void Codec<Score>::write(const Score& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initScore();
  out.setPrompt(message.prompt);
  out.setLabel(message.label);
  out.setColumns(message.columns);
  write_reads(message.sent, out.initSent());
  out.setMessages(message.messages);
  out.setUpdate(message.update);
  auto items = out.initItems(count_of(message.items));
  for (unsigned i = 0; i < items.size(); ++i) {
    items[i].setResponse(message.items[i].response);
    items[i].setTokens(bytes_of(message.items[i].tokens));
  }
}
template <>
bool Codec<Score>::is(schema::Envelope::Reader envelope) {
  return envelope.isScore();
}
template <>
core::Result<Score> Codec<Score>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getScore();
  Score message;
  message.prompt = text_of(in.getPrompt());
  message.label = text_of(in.getLabel());
  message.columns = text_of(in.getColumns());
  message.sent = read_reads(in.getSent());
  message.messages = text_of(in.getMessages());
  message.update = in.getUpdate();
  for (const auto item : in.getItems()) {
    TROUPE_TRY_ASSIGN(tokens, numbers_of<std::int32_t>(item.getTokens(), "tokens"));
    message.items.push_back({text_of(item.getResponse()), std::move(tokens)});
  }
  return message;
}

template <>
void Codec<Scores>::write(const Scores& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initScores();
  auto list = out.initValues(count_of(message.values));
  for (unsigned i = 0; i < list.size(); ++i) {
    if (message.values[i]) {
      list[i].setValue(*message.values[i]);
    } else {
      list[i].setMissing(i < message.causes.size() ? message.causes[i] : "");
    }
    if (i < message.extras.size()) list[i].setExtra(message.extras[i]);
  }
  if (message.wanted) write_reads(*message.wanted, out.initWanted());
}
template <>
bool Codec<Scores>::is(schema::Envelope::Reader envelope) {
  return envelope.isScores();
}
template <>
core::Result<Scores> Codec<Scores>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getScores();
  Scores message;
  for (const auto value : in.getValues()) {
    message.extras.push_back(text_of(value.getExtra()));
    if (value.isValue() && std::isfinite(value.getValue())) {
      message.values.push_back(value.getValue());
      message.causes.emplace_back();
    } else {
      message.values.push_back(std::nullopt);
      message.causes.push_back(value.isMissing() ? text_of(value.getMissing())
                                                 : "the score is not a finite number");
    }
  }
  if (in.hasWanted()) message.wanted = read_reads(in.getWanted());
  return message;
}

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
