// Pages of experience.
#include "actors/protocol/codec_parts.hpp"

namespace troupe::actors {
namespace {

core::Result<ExperienceSample> read_sample(schema::ExperienceSample::Reader in) {
  const auto record = in.getRecord();
  TROUPE_TRY_ASSIGN(tokens, numbers_of<std::int32_t>(record.getTokens(), "tokens"));
  TROUPE_TRY_ASSIGN(behaviour, numbers_of<float>(record.getBehaviour(), "behaviour"));
  TROUPE_TRY_ASSIGN(versions, numbers_of<core::Version>(record.getVersions(), "versions"));
  TROUPE_TRY_ASSIGN(reference, numbers_of<float>(record.getReference(), "reference"));
  return ExperienceSample{std::move(tokens),    std::move(behaviour), std::move(versions),
                          std::move(reference), in.getScore(),        text_of(record.getFinish())};
}

}  // namespace

template <>
void Codec<FetchExperience>::write(const FetchExperience& message,
                                   schema::Envelope::Builder envelope) {
  auto out = envelope.initFetchExperience();
  out.setUpdate(message.update);
  out.setCursor(message.cursor);
}
template <>
bool Codec<FetchExperience>::is(schema::Envelope::Reader envelope) {
  return envelope.isFetchExperience();
}
template <>
core::Result<FetchExperience> Codec<FetchExperience>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getFetchExperience();
  return FetchExperience{in.getUpdate(), in.getCursor()};
}

template <>
void Codec<ExperiencePage>::write(const ExperiencePage& message,
                                  schema::Envelope::Builder envelope) {
  auto out = envelope.initExperiencePage();
  out.setNext(message.next);
  auto groups = out.initGroups(count_of(message.groups));
  for (unsigned g = 0; g < groups.size(); ++g) {
    const ExperienceGroup& group = message.groups[g];
    write_ticket(group.ticket, groups[g].initTicket());
    groups[g].setPrompt(bytes_of(group.prompt));
    auto samples = groups[g].initSamples(count_of(group.samples));
    for (unsigned i = 0; i < samples.size(); ++i) {
      const ExperienceSample& sample = group.samples[i];
      auto record = samples[i].initRecord();
      record.setTokens(bytes_of(sample.tokens));
      record.setBehaviour(bytes_of(sample.behaviour));
      record.setVersions(bytes_of(sample.versions));
      record.setReference(bytes_of(sample.reference));
      record.setFinish(sample.finish);
      samples[i].setScore(sample.score);
    }
  }
}
template <>
bool Codec<ExperiencePage>::is(schema::Envelope::Reader envelope) {
  return envelope.isExperiencePage();
}
template <>
core::Result<ExperiencePage> Codec<ExperiencePage>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getExperiencePage();
  ExperiencePage message;
  message.next = in.getNext();
  for (const auto group : in.getGroups()) {
    ExperienceGroup one;
    one.ticket = read_ticket(group.getTicket());
    TROUPE_TRY_ASSIGN(prompt, numbers_of<std::int32_t>(group.getPrompt(), "prompt"));
    one.prompt = std::move(prompt);
    for (const auto sample : group.getSamples()) {
      TROUPE_TRY_ASSIGN(read, read_sample(sample));
      one.samples.push_back(std::move(read));
    }
    message.groups.push_back(std::move(one));
  }
  return message;
}

}  // namespace troupe::actors
