// What the critic is asked.
#include "actors/protocol/codec_parts.hpp"

namespace troupe::actors {
namespace {

using ValuesList = capnp::List<schema::GroupValues>;

void write_values(const std::vector<GroupValues>& groups, ValuesList::Builder out) {
  for (unsigned g = 0; g < out.size(); ++g) {
    auto samples = out[g].initSamples(count_of(groups[g].samples));
    for (unsigned i = 0; i < samples.size(); ++i)
      samples.set(i, bytes_of(groups[g].samples[i]));
  }
}

core::Result<std::vector<GroupValues>> read_values(ValuesList::Reader in) {
  std::vector<GroupValues> groups;
  for (const auto group : in) {
    GroupValues one;
    for (const auto sample : group.getSamples()) {
      TROUPE_TRY_ASSIGN(values, numbers_of<float>(sample, "samples"));
      one.samples.push_back(std::move(values));
    }
    groups.push_back(std::move(one));
  }
  return groups;
}

core::Result<ValueGroup> read_group(schema::ValueGroup::Reader in) {
  ValueGroup group;
  group.ticket = read_ticket(in.getTicket());
  TROUPE_TRY_ASSIGN(prompt, numbers_of<std::int32_t>(in.getPrompt(), "prompt"));
  group.prompt = std::move(prompt);
  for (const auto response : in.getResponses()) {
    TROUPE_TRY_ASSIGN(tokens, numbers_of<std::int32_t>(response, "responses"));
    group.responses.push_back(std::move(tokens));
  }
  return group;
}

}  // namespace

template <>
void Codec<ScoreValues>::write(const ScoreValues& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initScoreValues();
  out.setUpdate(message.update);
  out.setCursor(message.cursor);
  auto groups = out.initGroups(count_of(message.groups));
  for (unsigned g = 0; g < groups.size(); ++g) {
    const ValueGroup& group = message.groups[g];
    write_ticket(group.ticket, groups[g].initTicket());
    groups[g].setPrompt(bytes_of(group.prompt));
    auto responses = groups[g].initResponses(count_of(group.responses));
    for (unsigned i = 0; i < responses.size(); ++i)
      responses.set(i, bytes_of(group.responses[i]));
  }
}
template <>
bool Codec<ScoreValues>::is(schema::Envelope::Reader envelope) {
  return envelope.isScoreValues();
}
template <>
core::Result<ScoreValues> Codec<ScoreValues>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getScoreValues();
  ScoreValues message;
  message.update = in.getUpdate();
  message.cursor = in.getCursor();
  for (const auto group : in.getGroups()) {
    TROUPE_TRY_ASSIGN(one, read_group(group));
    message.groups.push_back(std::move(one));
  }
  return message;
}

template <>
void Codec<CriticValues>::write(const CriticValues& message, schema::Envelope::Builder envelope) {
  write_values(message.groups, envelope.initValues().initGroups(count_of(message.groups)));
}
template <>
bool Codec<CriticValues>::is(schema::Envelope::Reader envelope) {
  return envelope.isValues();
}
template <>
core::Result<CriticValues> Codec<CriticValues>::read(schema::Envelope::Reader envelope) {
  TROUPE_TRY_ASSIGN(groups, read_values(envelope.getValues().getGroups()));
  return CriticValues{std::move(groups)};
}

template <>
void Codec<PutReturns>::write(const PutReturns& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initPutReturns();
  out.setUpdate(message.update);
  out.setCursor(message.cursor);
  write_values(message.groups, out.initGroups(count_of(message.groups)));
}
template <>
bool Codec<PutReturns>::is(schema::Envelope::Reader envelope) {
  return envelope.isPutReturns();
}
template <>
core::Result<PutReturns> Codec<PutReturns>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getPutReturns();
  TROUPE_TRY_ASSIGN(groups, read_values(in.getGroups()));
  return PutReturns{in.getUpdate(), in.getCursor(), std::move(groups)};
}

template <>
void Codec<TrainCritic>::write(const TrainCritic& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initTrainCritic();
  out.setUpdate(message.update);
  out.setGroups(message.groups);
}
template <>
bool Codec<TrainCritic>::is(schema::Envelope::Reader envelope) {
  return envelope.isTrainCritic();
}
template <>
core::Result<TrainCritic> Codec<TrainCritic>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getTrainCritic();
  return TrainCritic{in.getUpdate(), in.getGroups()};
}

}  // namespace troupe::actors
