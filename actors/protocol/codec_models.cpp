// What generators, the reference and the policy are asked.
#include "actors/protocol/codec_parts.hpp"

namespace troupe::actors {
namespace {

void write_source(const WeightSource& source, schema::WeightSource::Builder out) {
  out.setHostId(source.host_id);
  out.setSocket(source.socket);
  out.setTcpHost(source.tcp_host);
  out.setTcpPort(source.tcp_port);
  out.setKey(source.key);
}

WeightSource read_source(schema::WeightSource::Reader in) {
  return {text_of(in.getHostId()), text_of(in.getSocket()), text_of(in.getTcpHost()),
          in.getTcpPort(), text_of(in.getKey())};
}

}  // namespace

template <>
void Codec<Generate>::write(const Generate& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initGenerate();
  write_tickets(message.tickets, out.initTickets(count_of(message.tickets)));
  out.setVersionMin(message.version_min);
  auto sampling = out.initSampling();
  sampling.setTemperature(message.sampling.temperature);
  sampling.setTopP(message.sampling.top_p);
  sampling.setMinP(message.sampling.min_p);
  sampling.setTopK(message.sampling.top_k);
  sampling.setMaxNewTokens(message.sampling.max_new_tokens);
  auto stop = sampling.initStop(count_of(message.sampling.stop));
  for (unsigned i = 0; i < stop.size(); ++i) stop.set(i, message.sampling.stop[i]);
}
template <>
bool Codec<Generate>::is(schema::Envelope::Reader envelope) {
  return envelope.isGenerate();
}
template <>
core::Result<Generate> Codec<Generate>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getGenerate();
  const auto sampling = in.getSampling();
  Generate message;
  message.tickets = read_tickets(in.getTickets());
  message.version_min = in.getVersionMin();
  message.sampling.temperature = sampling.getTemperature();
  message.sampling.top_p = sampling.getTopP();
  message.sampling.min_p = sampling.getMinP();
  message.sampling.top_k = sampling.getTopK();
  message.sampling.max_new_tokens = sampling.getMaxNewTokens();
  for (const auto stop : sampling.getStop()) message.sampling.stop.push_back(text_of(stop));
  return message;
}

template <>
void Codec<Generated>::write(const Generated& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initGenerated();
  out.setSamples(message.samples);
  out.setTokens(message.tokens);
  out.setPromptTokens(message.prompt_tokens);
  out.setSeconds(message.seconds);
}
template <>
bool Codec<Generated>::is(schema::Envelope::Reader envelope) {
  return envelope.isGenerated();
}
template <>
core::Result<Generated> Codec<Generated>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getGenerated();
  return Generated{in.getSamples(), in.getTokens(), in.getPromptTokens(), in.getSeconds()};
}

template <>
void Codec<UpdateWeights>::write(const UpdateWeights& message,
                                 schema::Envelope::Builder envelope) {
  auto out = envelope.initUpdateWeights();
  out.setVersion(message.version);
  write_source(message.source, out.initSource());
  out.setRecomputeKv(message.recompute_kv);
}
template <>
bool Codec<UpdateWeights>::is(schema::Envelope::Reader envelope) {
  return envelope.isUpdateWeights();
}
template <>
core::Result<UpdateWeights> Codec<UpdateWeights>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getUpdateWeights();
  return UpdateWeights{in.getVersion(), read_source(in.getSource()), in.getRecomputeKv()};
}

template <>
void Codec<ScoreLogprobs>::write(const ScoreLogprobs& message,
                                 schema::Envelope::Builder envelope) {
  auto out = envelope.initScoreLogprobs();
  out.setPrompt(bytes_of(message.prompt));
  out.setTemperature(message.temperature);
  auto responses = out.initResponses(count_of(message.responses));
  for (unsigned i = 0; i < responses.size(); ++i) {
    responses.set(i, bytes_of(message.responses[i]));
  }
}
template <>
bool Codec<ScoreLogprobs>::is(schema::Envelope::Reader envelope) {
  return envelope.isScoreLogprobs();
}
template <>
core::Result<ScoreLogprobs> Codec<ScoreLogprobs>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getScoreLogprobs();
  ScoreLogprobs message;
  TROUPE_TRY_ASSIGN(prompt, numbers_of<std::int32_t>(in.getPrompt(), "prompt"));
  message.prompt = std::move(prompt);
  for (const auto response : in.getResponses()) {
    TROUPE_TRY_ASSIGN(tokens, numbers_of<std::int32_t>(response, "responses"));
    message.responses.push_back(std::move(tokens));
  }
  message.temperature = in.getTemperature();
  return message;
}

template <>
void Codec<Logprobs>::write(const Logprobs& message, schema::Envelope::Builder envelope) {
  auto list = envelope.initLogprobs().initSamples(count_of(message.samples));
  for (unsigned i = 0; i < list.size(); ++i) list.set(i, bytes_of(message.samples[i]));
}
template <>
bool Codec<Logprobs>::is(schema::Envelope::Reader envelope) {
  return envelope.isLogprobs();
}
template <>
core::Result<Logprobs> Codec<Logprobs>::read(schema::Envelope::Reader envelope) {
  Logprobs message;
  for (const auto sample : envelope.getLogprobs().getSamples()) {
    TROUPE_TRY_ASSIGN(values, numbers_of<float>(sample, "samples"));
    message.samples.push_back(std::move(values));
  }
  return message;
}

template <>
void Codec<TrainUpdate>::write(const TrainUpdate& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initTrainUpdate();
  out.setUpdate(message.update);
  out.setGroups(message.groups);
}
template <>
bool Codec<TrainUpdate>::is(schema::Envelope::Reader envelope) {
  return envelope.isTrainUpdate();
}
template <>
core::Result<TrainUpdate> Codec<TrainUpdate>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getTrainUpdate();
  return TrainUpdate{in.getUpdate(), in.getGroups()};
}

template <>
void Codec<Trained>::write(const Trained& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initTrained();
  out.setVersion(message.version);
  auto list = out.initMetrics(count_of(message.metrics));
  for (unsigned i = 0; i < list.size(); ++i) {
    list[i].setName(message.metrics[i].first);
    list[i].setValue(message.metrics[i].second);
  }
}
template <>
bool Codec<Trained>::is(schema::Envelope::Reader envelope) {
  return envelope.isTrained();
}
template <>
core::Result<Trained> Codec<Trained>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getTrained();
  Trained message;
  message.version = in.getVersion();
  for (const auto metric : in.getMetrics()) {
    message.metrics.emplace_back(text_of(metric.getName()), metric.getValue());
  }
  return message;
}

template <>
void Codec<PublishWeights>::write(const PublishWeights&, schema::Envelope::Builder envelope) {
  envelope.initPublishWeights();
}
template <>
bool Codec<PublishWeights>::is(schema::Envelope::Reader envelope) {
  return envelope.isPublishWeights();
}
template <>
core::Result<PublishWeights> Codec<PublishWeights>::read(schema::Envelope::Reader) {
  return PublishWeights{};
}

template <>
void Codec<Published>::write(const Published& message, schema::Envelope::Builder envelope) {
  auto out = envelope.initPublished();
  out.setVersion(message.version);
  write_source(message.source, out.initSource());
}
template <>
bool Codec<Published>::is(schema::Envelope::Reader envelope) {
  return envelope.isPublished();
}
template <>
core::Result<Published> Codec<Published>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getPublished();
  return Published{in.getVersion(), read_source(in.getSource())};
}

template <>
void Codec<AwaitPublished>::write(const AwaitPublished& message,
                                  schema::Envelope::Builder envelope) {
  auto out = envelope.initAwaitPublished();
  out.setHolds(message.held.has_value());
  out.setThan(message.held.value_or(0));
}
template <>
bool Codec<AwaitPublished>::is(schema::Envelope::Reader envelope) {
  return envelope.isAwaitPublished();
}
template <>
core::Result<AwaitPublished> Codec<AwaitPublished>::read(schema::Envelope::Reader envelope) {
  const auto in = envelope.getAwaitPublished();
  AwaitPublished message;
  if (in.getHolds()) message.held = in.getThan();
  return message;
}

}  // namespace troupe::actors
